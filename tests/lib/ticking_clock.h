// A clock that a test moves: it stands until it is told to tick. Thread: any.
#pragma once

#include <atomic>

#include "engine/env/clock.h"

namespace kvsyncfs {

/// Each look at it takes a second, once that is asked for.
class TickingClock final : public Clock {
 public:
  static constexpr std::uint64_t kSecond = 1'000'000'000;

  Timestamp now() override { return {}; }
  std::uint64_t boot_ns() override { return ns_ += ticks_ ? kSecond : 0; }
  void tick() { ticks_ = true; }

 private:
  std::atomic<std::uint64_t> ns_ = kSecond;
  std::atomic<bool> ticks_ = false;
};

}  // namespace kvsyncfs
