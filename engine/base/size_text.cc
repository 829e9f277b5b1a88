#include "engine/base/size_text.h"

#include <charconv>
#include <optional>

namespace kvsyncfs {
namespace {

constexpr std::string_view kUnits = "KMGTPE";
constexpr std::size_t kFractionDigitsMax = 6;

/// All of `text` as a number, no sign, no blanks.
std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

/// Takes a unit off the end: 0 for bytes, 10 for K, ...
unsigned take_unit_shift(std::string_view& text) {
  std::string_view rest = text;
  if (rest.ends_with("iB")) rest.remove_suffix(2);
  if (rest.empty()) return 0;
  constexpr char kUpperCase = ~0x20;
  const std::size_t unit = kUnits.find(static_cast<char>(rest.back() & kUpperCase));
  if (unit == std::string_view::npos) return 0;
  rest.remove_suffix(1);
  text = rest;
  return static_cast<unsigned>(10 * (unit + 1));
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const unsigned shift = take_unit_shift(text);
  const std::size_t point = text.find('.');
  const auto whole = parse_digits(text.substr(0, point));
  if (!whole || *whole > ~std::uint64_t{0} >> shift) return {};
  std::uint64_t bytes = *whole << shift;
  if (point == std::string_view::npos) return bytes;

  const std::string_view digits = text.substr(point + 1);
  const auto fraction = parse_digits(digits);
  if (!fraction || digits.size() > kFractionDigitsMax || shift == 0) return {};
  std::uint64_t scale = 1;
  for (std::size_t i = 0; i < digits.size(); ++i) scale *= 10;
  // 20 bits of a fraction and up to 60 of a unit do not fit together: the low bits of the unit go
  // first.
  const unsigned coarse = shift > 30 ? shift - 30 : 0;
  const std::uint64_t part = ((*fraction << (shift - coarse)) / scale) << coarse;
  if (bytes > ~std::uint64_t{0} - part) return {};
  return bytes + part;
}

}  // namespace

Result<SizeText> parse_size_text(std::string_view text) {
  SizeText size;
  if (text.ends_with('%')) {
    const auto percent = parse_digits(text.substr(0, text.size() - 1));
    if (percent && *percent >= 1 && *percent <= 100) {
      size.percent = static_cast<std::uint32_t>(*percent);
      return size;
    }
  } else if (const auto bytes = parse_bytes(text); bytes && *bytes > 0) {
    size.bytes = *bytes;
    return size;
  }
  return Error(Code::kInvalid, "'" + std::string(text) + "' is not a size (like 10G, 1.5T, 50%)");
}

std::string size_for_people(std::uint64_t bytes) {
  unsigned shift = 0;
  while (shift < 60 && bytes >> shift >= 1024) shift += 10;
  if (shift == 0) return std::to_string(bytes) + " bytes";
  const std::uint64_t tenths = (bytes >> (shift - 10)) * 10 / 1024;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " +
         kUnits[shift / 10 - 1] + "iB";
}

}  // namespace kvsyncfs
