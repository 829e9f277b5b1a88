// What follows from counters: rates over an interval, the hit rate of the hot tier over a window,
// write amplification. Nothing here divides by zero: what cannot be said is nullopt. Thread:
// values.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/stat_model.h"

namespace kvsyncfs {

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;
inline constexpr std::uint64_t kWindowMaxNs = 300 * kSecondNs;  ///< what a daemon remembers

/// From the start of the daemon, or from an earlier answer of the same life of it, until `now`.
class Interval {
 public:
  /// `before` is left out if it is null or of another life of the daemon.
  Interval(const StatDocument* before, const StatDocument& now);

  bool is_since_start() const { return before_ == nullptr; }
  std::uint64_t length_ns() const;
  /// How much a counter grew; nullopt if it is missing now.
  Count growth(std::string_view group, std::string_view name) const;
  Count operation_growth(std::string_view operation) const;
  /// Per second; nullopt if the growth is not known or no time has passed.
  std::optional<double> rate(Count growth) const;

 private:
  const StatDocument* before_;
  const StatDocument& now_;
};

bool is_same_life(const StatDocument& before, const StatDocument& now);

/// Pages that were served from memory, out of all that were read.
struct HitRate {
  std::uint64_t length_ns = 0;  ///< that it was measured over
  std::uint64_t hits = 0, misses = 0;
  std::optional<double> share() const;  ///< 0 to 1; nullopt: no reads
};
HitRate hit_rate_between(const HitSample& before, const HitSample& now);
/// Over the last `window_ns`: from the newest sample that is at least that old. Where there is
/// none, from the start of the daemon. nullopt if the daemon does not tell hits.
std::optional<HitRate> hit_rate_over(const StatDocument& now, std::uint64_t window_ns);
std::optional<HitRate> hit_rate_in_total(const StatDocument& now);

/// Bytes written to segments for each byte that users gave to them, checksums and the cleaner's
/// moves included. nullopt: nothing was appended in the interval.
std::optional<double> write_amplification(const Interval& interval);

}  // namespace kvsyncfs
