#include "fs/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <future>

namespace kvsyncfs {
namespace {

TEST(StopSignals, EachOfThemRunsTheActionOnce) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    std::atomic<int> runs = 0;
    std::promise<void> ran;
    StopSignals signals;
    signals.set_action([&] {
      ++runs;
      ran.set_value();  // a second run would throw
    });
    ASSERT_EQ(::kill(::getpid(), number), 0);
    ran.get_future().wait();
    ASSERT_EQ(::kill(::getpid(), number), 0);
    signals.set_action({});
    EXPECT_EQ(runs, 1) << number;
  }
}

TEST(StopSignals, OneThatCameEarlyIsNotLost) {
  StopSignals signals;
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  std::promise<void> ran;
  signals.set_action([&] { ran.set_value(); });
  ran.get_future().wait();
}

TEST(StopSignals, TakingTheActionAwayWaitsForIt) {
  std::promise<void> begun;
  std::atomic<bool> may_end = false, ended = false;
  StopSignals signals;
  signals.set_action([&] {
    begun.set_value();
    while (!may_end) std::this_thread::yield();
    ended = true;
  });
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  begun.get_future().wait();
  std::thread taker([&] {
    signals.set_action({});
    EXPECT_TRUE(ended);
  });
  may_end = true;
  taker.join();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace kvsyncfs
