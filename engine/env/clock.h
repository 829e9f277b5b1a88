// Time as the engine sees it. The real twin is env/real.h, the simulated one lives in tests/sim.
#pragma once

#include <compare>
#include <cstdint>

namespace kvsyncfs {

/// Wall-clock time of a file stamp: nanoseconds since 1970-01-01, may be negative.
/// int64 nanoseconds would end in 2262 and begin in 1677; seconds are kept apart for that reason.
struct Timestamp {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;  ///< 0 to 999 999 999, counts forward also before 1970
  auto operator<=>(const Timestamp&) const = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  /// Wall clock (CLOCK_REALTIME) for file stamps. Thread: any.
  virtual Timestamp now() = 0;
  /// CLOCK_BOOTTIME nanoseconds for deadlines and latencies; never goes back. Thread: any.
  virtual std::uint64_t boot_ns() = 0;
};

}  // namespace kvsyncfs
