#include "tools/stat_rates.h"

namespace kvsyncfs {
namespace {

std::uint64_t difference(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

Count count_of(const StatDocument& document, std::string_view operation) {
  for (const OperationStats& stats : document.operations()) {
    if (stats.name == operation) return stats.count;
  }
  return std::nullopt;
}

}  // namespace

bool is_same_life(const StatDocument& before, const StatDocument& now) {
  return before.pid() == now.pid() && before.uptime_ns() <= now.uptime_ns();
}

Interval::Interval(const StatDocument* before, const StatDocument& now)
    : before_(before != nullptr && is_same_life(*before, now) ? before : nullptr), now_(now) {}

std::uint64_t Interval::length_ns() const {
  return now_.uptime_ns() - (before_ != nullptr ? before_->uptime_ns() : 0);
}

Count Interval::growth(std::string_view group, std::string_view name) const {
  const Count now = now_.number(group, name);
  if (!now || before_ == nullptr) return now;
  return difference(*now, before_->number(group, name).value_or(0));
}

Count Interval::operation_growth(std::string_view operation) const {
  const Count now = count_of(now_, operation);
  if (!now || before_ == nullptr) return now;
  return difference(*now, count_of(*before_, operation).value_or(0));
}

std::optional<double> Interval::rate(Count growth) const {
  if (!growth || length_ns() == 0) return std::nullopt;
  return static_cast<double>(*growth) * static_cast<double>(kSecondNs) /
         static_cast<double>(length_ns());
}

std::optional<double> HitRate::share() const {
  const double all = static_cast<double>(hits) + static_cast<double>(misses);
  if (all == 0) return std::nullopt;
  return static_cast<double>(hits) / all;
}

HitRate hit_rate_between(const HitSample& before, const HitSample& now) {
  return {difference(now.uptime_ns, before.uptime_ns), difference(now.hits, before.hits),
          difference(now.misses, before.misses)};
}

std::optional<HitRate> hit_rate_over(const StatDocument& document, std::uint64_t window_ns) {
  const auto now = document.hits();
  if (!now) return std::nullopt;
  HitSample start;
  for (const HitSample& sample : document.history()) {
    const bool is_old_enough = sample.uptime_ns + window_ns <= now->uptime_ns;
    if (is_old_enough && sample.uptime_ns > start.uptime_ns) start = sample;
  }
  return hit_rate_between(start, *now);
}

std::optional<HitRate> hit_rate_in_total(const StatDocument& document) {
  const auto now = document.hits();
  if (!now) return std::nullopt;
  return hit_rate_between({}, *now);
}

std::optional<double> write_amplification(const Interval& interval) {
  const Count written = interval.growth("engine", "segment_written_bytes");
  const Count appended = interval.growth("engine", "appended_bytes");
  if (!written || !appended || *appended == 0) return std::nullopt;
  return static_cast<double>(*written) / static_cast<double>(*appended);
}

}  // namespace kvsyncfs
