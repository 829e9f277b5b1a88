#include "tools/stat_rates.h"

#include <gtest/gtest.h>

#include "tests/tools/stat_documents.h"

namespace kvsyncfs {
namespace {

TEST(HitRate, WithoutReadsIsNotKnownInsteadOfADivisionByZero) {
  EXPECT_EQ((HitRate{10, 0, 0}.share()), std::nullopt);
}

TEST(HitRate, StaysBetweenNoneAndAll) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  EXPECT_EQ((HitRate{1, 0, 5}.share()), 0.0);
  EXPECT_EQ((HitRate{1, 5, 0}.share()), 1.0);
  EXPECT_EQ((HitRate{1, 3, 1}.share()), 0.75);
  EXPECT_DOUBLE_EQ(*(HitRate{1, kHuge, kHuge}.share()), 0.5);
  // Samples that are not of one life never give a share outside of 0 to 1.
  EXPECT_EQ(hit_rate_between({5, 100, 0}, {9, 50, 50}).share(), 0.0);
}

TEST(HitRate, OverAWindowStartsAtTheNewestSampleThatIsOldEnough) {
  const std::vector<HitSample> history = {
      {10 * kSecondNs, 10, 0}, {20 * kSecondNs, 20, 0}, {30 * kSecondNs, 20, 10}};
  const auto now = hits_at(35, 25, 10, history);
  const auto rate = hit_rate_over(now, 10 * kSecondNs);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->length_ns, 15 * kSecondNs);
  EXPECT_EQ(rate->hits, 5u);
  EXPECT_EQ(rate->misses, 10u);
  EXPECT_EQ(hit_rate_over(now, 5 * kSecondNs)->length_ns, 5 * kSecondNs);
}

TEST(HitRate, OverMoreThanTheDaemonRemembersIsSinceItsStart) {
  const auto now = hits_at(35, 25, 10, {{30 * kSecondNs, 20, 10}});
  const auto rate = hit_rate_over(now, 60 * kSecondNs);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->length_ns, 35 * kSecondNs);
  EXPECT_EQ(rate->hits, 25u);
  EXPECT_EQ(hit_rate_in_total(now)->hits, 25u);
}

TEST(HitRate, OfADaemonThatDoesNotTellIsNotKnown) {
  const auto now = document_of(answer_at(5));
  EXPECT_FALSE(hit_rate_over(now, kSecondNs));
  EXPECT_FALSE(hit_rate_in_total(now));
}

TEST(Interval, RatesAreGrowthOverItsLength) {
  auto first = answer_at(10), second = answer_at(14);
  first["operations"] = {{"read", {{"count", 100}}}};
  second["operations"] = {{"read", {{"count", 140}}}, {"write", {{"count", 8}}}};
  const auto before = document_of(first), now = document_of(second);
  const Interval interval(&before, now);
  EXPECT_FALSE(interval.is_since_start());
  EXPECT_EQ(interval.length_ns(), 4 * kSecondNs);
  EXPECT_EQ(interval.rate(interval.operation_growth("read")), 10.0);
  EXPECT_EQ(interval.rate(interval.operation_growth("write")), 2.0);
  EXPECT_EQ(interval.operation_growth("mkdir"), std::nullopt);
  EXPECT_EQ(Interval(nullptr, now).rate(Count(140)), 10.0);
}

TEST(Interval, AnAnswerOfAnotherLifeDoesNotCount) {
  const auto now = document_of(answer_at(14, 8));
  const auto other_process = document_of(answer_at(10, 7));
  const auto later = document_of(answer_at(20, 8));
  EXPECT_TRUE(Interval(&other_process, now).is_since_start());
  EXPECT_TRUE(Interval(&later, now).is_since_start());
  EXPECT_EQ(Interval(&later, now).length_ns(), 14 * kSecondNs);
}

TEST(Interval, OfNoLengthHasNoRates) {
  const auto now = document_of(answer_at(0));
  EXPECT_EQ(Interval(nullptr, now).rate(Count(5)), std::nullopt);
  EXPECT_EQ(Interval(&now, now).rate(Count(5)), std::nullopt);
  EXPECT_EQ(Interval(nullptr, document_of(answer_at(1))).rate(std::nullopt), std::nullopt);
}

TEST(WriteAmplification, IsSegmentBytesPerByteAppended) {
  auto answer = answer_at(1);
  answer["engine"] = {{"segment_written_bytes", 300}, {"appended_bytes", 200}};
  const auto now = document_of(answer);
  EXPECT_EQ(write_amplification(Interval(nullptr, now)), 1.5);
  EXPECT_EQ(write_amplification(Interval(&now, now)), std::nullopt) << "nothing was appended";
  EXPECT_EQ(write_amplification(Interval(nullptr, document_of(answer_at(1)))), std::nullopt);
}

}  // namespace
}  // namespace kvsyncfs
