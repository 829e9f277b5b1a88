#include "engine/base/histogram.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

TEST(Histogram, BucketsFollowEachOtherWithoutGapOrOverlap) {
  for (std::size_t i = 0; i + 1 < HistogramBuckets::kCount; ++i) {
    const std::uint64_t last = HistogramBuckets::upper_bound(i);
    ASSERT_EQ(HistogramBuckets::index(last), i);
    ASSERT_EQ(HistogramBuckets::index(last + 1), i + 1);
  }
  EXPECT_EQ(HistogramBuckets::upper_bound(HistogramBuckets::kCount - 1),
            HistogramBuckets::kValueMax);
  EXPECT_EQ(HistogramBuckets::index(kHuge), HistogramBuckets::kCount - 1);
}

TEST(Histogram, PercentileIsNeverBelowTheTruthAndAtMostOneStepAbove) {
  Histogram histogram;
  constexpr std::uint64_t kCount = 100'000;
  for (std::uint64_t i = 1; i <= kCount; ++i) histogram.record(i * 37);
  const HistogramSnapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.count(), kCount);
  EXPECT_EQ(snapshot.max(), kCount * 37);
  for (const double percent : {0.1, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
    const double truth = percent / 100 * kCount * 37;
    const auto shown = static_cast<double>(snapshot.percentile(percent));
    EXPECT_GE(shown, truth - 37) << percent;
    EXPECT_LE(shown, truth * (1 + 1.0 / 64) + 37) << percent;
  }
}

TEST(Histogram, OfOneValueShowsThatValueAtEveryPercentile) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1'234'567}, kHuge}) {
    Histogram histogram;
    histogram.record(value);
    const HistogramSnapshot snapshot = histogram.snapshot();
    for (const double percent : {-1.0, 0.0, 50.0, 99.9, 100.0, 200.0}) {
      EXPECT_EQ(snapshot.percentile(percent), value);
    }
  }
}

TEST(Histogram, OfNothingIsZero) {
  const HistogramSnapshot snapshot = Histogram().snapshot();
  EXPECT_EQ(snapshot.count(), 0u);
  EXPECT_EQ(snapshot.max(), 0u);
  EXPECT_EQ(snapshot.percentile(99), 0u);
}

TEST(Histogram, RareSlowValuesShowOnlyInTheTail) {
  Histogram histogram;
  for (int i = 0; i < 998; ++i) histogram.record(100);
  histogram.record(1'000'000);
  histogram.record(kHuge);
  const HistogramSnapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.percentile(50), 100u);
  EXPECT_EQ(snapshot.percentile(99.8), 100u);
  EXPECT_GE(snapshot.percentile(99.9), 1'000'000u);
  EXPECT_LT(snapshot.percentile(99.9), 1'020'000u);
  EXPECT_EQ(snapshot.percentile(100), kHuge);
}

TEST(Histogram, LosesNothingWhenManyThreadsRecordAndSnapshotsOnlyGrow) {
  Histogram histogram;
  constexpr int kThreads = 4;
  constexpr std::uint64_t kEach = 50'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kEach; ++i) histogram.record(i);
    });
  }
  std::uint64_t seen = 0;
  for (int i = 0; i < 100; ++i) {
    const HistogramSnapshot snapshot = histogram.snapshot();
    EXPECT_GE(snapshot.count(), seen);
    EXPECT_LE(snapshot.percentile(100), snapshot.max());
    seen = snapshot.count();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(histogram.snapshot().count(), kThreads * kEach);
  EXPECT_EQ(histogram.snapshot().max(), kEach - 1);
}

}  // namespace
}  // namespace kvsyncfs
