#include "engine/env/deadline.h"

#include <gtest/gtest.h>

#include <thread>

namespace kvsyncfs {
namespace {

/// Each look at it takes a second.
class TickingClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t boot_ns() override { return ns_ += 1'000'000'000; }

 private:
  std::atomic<std::uint64_t> ns_ = 0;
};

TEST(Deadline, WaitEndsByTheClock) {
  TickingClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  EXPECT_FALSE(Deadline(clock, 5'000'000'000).wait(changed, lock, [] { return false; }));
  EXPECT_TRUE(lock.owns_lock());
}

TEST(Deadline, WhatHoldsAlreadyNeedsNoTime) {
  TickingClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  EXPECT_TRUE(Deadline(clock, 0).wait(changed, lock, [] { return true; }));
}

TEST(Deadline, WaitEndsWhenItIsTold) {
  TickingClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread other([&] {
    std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  EXPECT_TRUE(Deadline(clock, std::uint64_t{1} << 62).wait(changed, lock, [&] { return done; }));
  lock.unlock();
  other.join();
}

TEST(Deadline, MutexOfAnotherIsNotWaitedForLonger) {
  TickingClock clock;
  std::timed_mutex mutex;
  mutex.lock();
  std::thread([&] {
    std::unique_lock lock(mutex, std::defer_lock);
    EXPECT_FALSE(Deadline(clock, 5'000'000'000).lock(lock));
    EXPECT_FALSE(lock.owns_lock());
  }).join();
  mutex.unlock();
  std::unique_lock lock(mutex, std::defer_lock);
  EXPECT_TRUE(Deadline(clock, 0).lock(lock));
}

}  // namespace
}  // namespace kvsyncfs
