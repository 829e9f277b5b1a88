// How long a call may wait for others: until a point of boot time that it fixes when it begins.
//
// The clock is asked, not the thread's own time: a wait looks at it at least every kLookNs, so that
// a simulated clock ends it too. What a call waits for in the kernel (a read, a write or a sync of
// the disk) is no wait of this kind. Thread: values; the clock outlives them.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "engine/env/clock.h"

namespace kvsyncfs {

class Deadline {
 public:
  Deadline(Clock& clock, std::uint64_t timeout_ns)
      : clock_(&clock), end_ns_(clock.boot_ns() + timeout_ns) {}

  bool is_over() const { return clock_->boot_ns() >= end_ns_; }
  std::uint64_t end_ns() const { return end_ns_; }  ///< boot time

  /// Until `done` holds; false if the time was over before. `lock` is held again in both cases.
  template <typename Predicate>
  bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
            Predicate done) const {
    while (!done()) {
      const std::uint64_t left_ns = left();
      if (left_ns == 0) return false;
      changed.wait_for(lock, std::chrono::nanoseconds(std::min(left_ns, kLookNs)));
    }
    return true;
  }

  /// Takes the mutex (a timed one); false if the time was over before.
  template <typename Mutex>
  bool lock(std::unique_lock<Mutex>& lock) const {
    if (lock.try_lock()) return true;
    for (;;) {
      const std::uint64_t left_ns = left();
      if (left_ns == 0) return false;
      if (lock.try_lock_for(std::chrono::nanoseconds(std::min(left_ns, kLookNs)))) return true;
    }
  }

 private:
  static constexpr std::uint64_t kLookNs = 20'000'000;

  std::uint64_t left() const {
    const std::uint64_t now_ns = clock_->boot_ns();
    return end_ns_ > now_ns ? end_ns_ - now_ns : 0;
  }

  Clock* clock_;
  std::uint64_t end_ns_;
};

}  // namespace kvsyncfs
