#include "tools/stat_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace kvsyncfs {
namespace {

constexpr std::string_view kUnknown = "n/a";

/// Three digits; `value` is below 1000 or has no larger unit.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string scaled(double value, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= step - 0.5) {
    value /= step;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(value), units[unit]);
}

constexpr std::array<std::string_view, 5> kBytes = {"B", "KiB", "MiB", "GiB", "TiB"};
constexpr std::array<std::string_view, 4> kTimes = {"ns", "us", "ms", "s"};
constexpr std::array<std::string_view, 4> kCounts = {"k", "M", "G", "T"};
constexpr std::uint64_t kPlainCountMax = 99'999;

}  // namespace

std::string human_bytes(std::optional<std::uint64_t> bytes) {
  return bytes ? scaled(static_cast<double>(*bytes), 1024, kBytes) : std::string(kUnknown);
}

std::string human_count(std::optional<std::uint64_t> count) {
  if (!count) return std::string(kUnknown);
  if (*count <= kPlainCountMax) return fmt::format("{}", *count);
  return scaled(static_cast<double>(*count) / 1000, 1000, kCounts);
}

std::string human_rate(std::optional<double> per_second) {
  if (!per_second) return std::string(kUnknown);
  const double rate = *per_second;
  if (rate < 99.95) return fmt::format("{:.1f}", rate);
  return human_count(static_cast<std::uint64_t>(std::llround(std::min(rate, 1e18))));
}

std::string human_time(std::optional<std::uint64_t> ns) {
  return ns ? scaled(static_cast<double>(*ns), 1000, kTimes) : std::string(kUnknown);
}

std::string human_duration(std::uint64_t ns) {
  const std::uint64_t s = ns / 1'000'000'000;
  if (s < 60) return s < 10 ? human_time(ns) : fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
  return fmt::format("{} d {} h", s / 86400, s / 3600 % 24);
}

std::string human_percent(double share) {
  // Two decimals, rounded towards the middle at both ends.
  double percent = std::round(std::clamp(share, 0.0, 1.0) * 10'000) / 100;
  if (share < 1) percent = std::min(percent, 99.99);
  if (share > 0) percent = std::max(percent, 0.01);
  return fmt::format("{:.2f} %", percent);
}

}  // namespace kvsyncfs
