// Threads under simulated time: one at a time, as the seed says, and a wait costs no real time.
#include "tests/sim/cluster/sim_threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/sim/cluster/seed_process.h"

namespace kvsyncfs {
namespace {

using std::chrono::hours;
using std::chrono::steady_clock;

SeedRun in_simulation(std::uint64_t seed, const std::function<SeedRun()>& run) {
  return run_in_process(
      [&] {
        sim_threads::begin(seed);
        sim_threads::on_end([](const std::string& why) { end_process(why); });
        sim_threads::set_turn_limit(10'000);
        return run();
      },
      20);
}

/// The order in which threads come to write down their names.
SeedRun order_of_threads() {
  std::mutex mutex;
  std::string order;
  std::vector<std::thread> threads;
  for (char name = 'a'; name < 'g'; ++name)
    threads.emplace_back([&mutex, &order, name] {
      for (int i = 0; i < 20; ++i) {
        std::lock_guard lock(mutex);
        order += name;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return {{}, order};
}

TEST(SimThreads, OneSeedIsOneOrder) {
  const SeedRun run = in_simulation(1, order_of_threads);
  EXPECT_EQ(run.problem, "");
  EXPECT_EQ(run.notes.size(), 120u);
  EXPECT_EQ(in_simulation(1, order_of_threads).notes, run.notes);
  EXPECT_NE(in_simulation(2, order_of_threads).notes, run.notes);
}

TEST(SimThreads, AWaitEndsAtItsSimulatedTime) {
  const SeedRun run = in_simulation(1, []() -> SeedRun {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    const auto begin = steady_clock::now();
    if (never.wait_for(lock, hours(5)) != std::cv_status::timeout) return {"woken", {}};
    std::this_thread::sleep_for(hours(5));
    const auto took = steady_clock::now() - begin;
    return {took >= hours(10) && took < hours(11) ? "" : "another length", {}};
  });
  EXPECT_EQ(run.problem, "");
}

TEST(SimThreads, AGroupsClocksGoAtTheirRate) {
  const SeedRun run = in_simulation(1, []() -> SeedRun {
    sim_threads::set_clock_rate(7, -100'000);
    sim_threads::move_wall_clock(7, -3'600'000'000'000);
    const auto wall = std::chrono::system_clock::now();
    const std::uint64_t begin_ns = sim_threads::now_ns();
    bool is_right = false;
    std::thread slow([&] {
      sim_threads::join_group(7, "slow");
      const auto begin = steady_clock::now();
      std::this_thread::sleep_for(hours(9));
      const auto took = steady_clock::now() - begin;
      is_right = took >= hours(9) && took < hours(10) &&
                 std::chrono::system_clock::now() - wall < hours(9);
    });
    slow.join();
    const std::uint64_t hours_10_ns = 36'000'000'000'000;
    is_right = is_right && sim_threads::now_ns() - begin_ns >= hours_10_ns &&
               sim_threads::now_ns() - begin_ns < hours_10_ns + 1'000'000'000;
    return {is_right ? "" : "another length", {}};
  });
  EXPECT_EQ(run.problem, "");
}

TEST(SimThreads, ADeadlockEndsTheRun) {
  const SeedRun run = in_simulation(1, []() -> SeedRun {
    std::mutex first, second;
    std::unique_lock lock(first);
    std::thread other([&] {
      std::lock_guard one(second);
      std::lock_guard two(first);
    });
    sim_threads::sleep(1'000'000);
    std::lock_guard never(second);
    other.join();
    return {"", {}};
  });
  EXPECT_EQ(run.problem, "deadlock");
}

TEST(SimThreads, ALoopWithoutEndEndsTheRun) {
  const SeedRun run = in_simulation(1, []() -> SeedRun {
    for (;;) std::this_thread::yield();
  });
  EXPECT_EQ(run.problem, "no end");
}

TEST(SimThreads, AFrozenGroupDoesNothing) {
  const SeedRun run = in_simulation(1, []() -> SeedRun {
    int done = 0;
    std::thread frozen([&] {
      sim_threads::join_group(7, "frozen");
      for (;; ++done) sim_threads::sleep(1'000'000);
    });
    sim_threads::sleep(10'000'000);
    sim_threads::freeze(7, sim_threads::now_ns() + 1'000'000'000);
    const int before = done;
    sim_threads::sleep(900'000'000);
    const int during = done;
    sim_threads::sleep(200'000'000);
    frozen.detach();
    return {before > 5 && during == before && done > during ? "" : "it went on", {}};
  });
  EXPECT_EQ(run.problem, "");
}

}  // namespace
}  // namespace kvsyncfs
