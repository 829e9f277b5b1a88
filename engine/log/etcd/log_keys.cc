#include "engine/log/etcd/log_keys.h"

#include <fmt/format.h>

#include <charconv>

namespace kvsyncfs::etcd {
namespace {

constexpr std::size_t kHexDigits = 16;
constexpr std::size_t kNameMax = 64;

std::optional<std::uint64_t> parse(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  return text.size() == kHexDigits ? parse(text, 16) : std::nullopt;
}

}  // namespace

LogKeys::LogKeys(const std::string& volume, std::uint64_t generation)
    : root_(fmt::format("/kvsyncfs/{}/", volume)),
      log_(fmt::format("{}log/{}/", root_, generation)) {}

std::string LogKeys::life(std::string_view node) const {
  return fmt::format("{}life/{}", root_, node);
}

std::string LogKeys::sessions(std::string_view node) const {
  return fmt::format("{}session/{}/", root_, node);
}

std::string LogKeys::session(std::string_view node, std::uint64_t incarnation) const {
  return fmt::format("{}{:016x}", sessions(node), incarnation);
}

std::string LogKeys::batches_from(std::uint64_t base) const {
  return fmt::format("{}{:016x}/", batches(), base);
}

std::string LogKeys::batch(const BatchName& name) const {
  return fmt::format("{}{}/{:016x}/{:016x}", batches_from(name.base), name.node, name.incarnation,
                     name.number);
}

std::optional<BatchName> LogKeys::parse_batch(std::string_view key) const {
  const std::string prefix = batches();
  if (!key.starts_with(prefix)) return std::nullopt;
  key.remove_prefix(prefix.size());
  constexpr std::size_t kTail = 2 * kHexDigits + 2;  // of the incarnation and the number
  if (key.size() < kHexDigits + 1 + kTail || key[kHexDigits] != '/') return std::nullopt;
  const std::string_view node = key.substr(kHexDigits + 1, key.size() - kHexDigits - 1 - kTail);
  const std::string_view tail = key.substr(key.size() - kTail);
  const auto base = parse_hex(key.substr(0, kHexDigits));
  const auto incarnation = parse_hex(tail.substr(1, kHexDigits));
  const auto number = parse_hex(tail.substr(kHexDigits + 2));
  const bool good = is_name(node) && tail[0] == '/' && tail[kHexDigits + 1] == '/';
  if (!good || !base || !incarnation || !number) return std::nullopt;
  return BatchName{*base, std::string(node), *incarnation, *number};
}

bool is_name(std::string_view text) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= kNameMax &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::optional<std::uint64_t> parse_number(std::string_view text) { return parse(text, 10); }

std::string to_text(const TrimRecord& record) {
  return fmt::format("{} {}", record.index, record.position.value);
}

std::optional<TrimRecord> parse_trim(std::string_view text) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto index = parse_number(text.substr(0, blank));
  const auto position = parse_number(text.substr(blank + 1));
  if (!index || !position) return std::nullopt;
  return TrimRecord{*index, Position{*position}};
}

}  // namespace kvsyncfs::etcd
