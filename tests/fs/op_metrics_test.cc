#include "fs/op_metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <thread>
#include <vector>

namespace kvsyncfs {
namespace {

TEST(OpMetrics, EveryOperationHasAName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kOpCount; ++i) names.insert(to_string(static_cast<OpKind>(i)));
  EXPECT_EQ(names.size(), kOpCount);
  EXPECT_EQ(names.count(""), 0u);
  EXPECT_EQ(to_string(OpKind::kLookup), "lookup");
  EXPECT_EQ(to_string(OpKind::kLseek), "lseek");
}

TEST(OpMetrics, FailuresCountAsCallsToo) {
  OpMetrics metrics;
  metrics.record(OpKind::kRead, 100, false);
  metrics.record(OpKind::kRead, 300, true);
  const OpMetrics::Op& read = metrics.op(OpKind::kRead);
  EXPECT_EQ(read.latency_ns.snapshot().count(), 2u);
  EXPECT_EQ(read.latency_ns.snapshot().max(), 300u);
  EXPECT_EQ(read.errors.load(), 1u);
  EXPECT_EQ(metrics.op(OpKind::kWrite).latency_ns.snapshot().count(), 0u);
}

TEST(OpMetrics, NothingIsLostBetweenThreads) {
  constexpr std::uint64_t kThreads = 4, kCalls = 10'000;
  OpMetrics metrics;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&metrics] {
      for (std::uint64_t i = 0; i < kCalls; ++i) metrics.record(OpKind::kWrite, i, i % 2 == 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(metrics.op(OpKind::kWrite).latency_ns.snapshot().count(), kThreads * kCalls);
  EXPECT_EQ(metrics.op(OpKind::kWrite).errors.load(), kThreads * kCalls / 2);
}

}  // namespace
}  // namespace kvsyncfs
