#include "tools/stat_units.h"

#include <gtest/gtest.h>

#include <limits>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

TEST(StatUnits, BytesHaveThreeDigitsAndPowersOf1024) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1 KiB");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(23u << 20), "23 MiB");
  EXPECT_EQ(human_bytes((1u << 20) - 1), "1 MiB");
  EXPECT_EQ(human_bytes(kHuge), "16777216 TiB");
}

TEST(StatUnits, CountsAreWholeUntilTheyAreLong) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(99'999), "99999");
  EXPECT_EQ(human_count(100'000), "100 k");
  EXPECT_EQ(human_count(1'234'567), "1.23 M");
}

TEST(StatUnits, RatesShowWhatIsSlow) {
  EXPECT_EQ(human_rate(0.0), "0.0");
  EXPECT_EQ(human_rate(0.25), "0.2");
  EXPECT_EQ(human_rate(99.9), "99.9");
  EXPECT_EQ(human_rate(1234.4), "1234");
  EXPECT_EQ(human_rate(2.5e6), "2.5 M");
}

TEST(StatUnits, TimesGoFromNanosecondsToSeconds) {
  EXPECT_EQ(human_time(0), "0 ns");
  EXPECT_EQ(human_time(950), "950 ns");
  EXPECT_EQ(human_time(12'340), "12.3 us");
  EXPECT_EQ(human_time(999'999), "1 ms");
  EXPECT_EQ(human_time(1'500'000'000), "1.5 s");
  EXPECT_EQ(human_time(4'000'000'000'000), "4000 s");
}

TEST(StatUnits, DurationsNameTwoUnits) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  EXPECT_EQ(human_duration(0), "0 ns");
  EXPECT_EQ(human_duration(kSecond / 2), "500 ms");
  EXPECT_EQ(human_duration(59 * kSecond), "59 s");
  EXPECT_EQ(human_duration(200 * kSecond), "3 min 20 s");
  EXPECT_EQ(human_duration(7260 * kSecond), "2 h 1 min");
  EXPECT_EQ(human_duration(std::uint64_t{90'000} * 2 * kSecond), "2 d 2 h");
}

TEST(StatUnits, PercentIsAllOrNothingOnlyIfItIs) {
  EXPECT_EQ(human_percent(0), "0.00 %");
  EXPECT_EQ(human_percent(1), "100.00 %");
  EXPECT_EQ(human_percent(0.98214), "98.21 %");
  EXPECT_EQ(human_percent(0.9999999), "99.99 %");
  EXPECT_EQ(human_percent(0.0000001), "0.01 %");
}

TEST(StatUnits, WhatIsNotKnownIsNotZero) {
  EXPECT_EQ(human_bytes(std::nullopt), "n/a");
  EXPECT_EQ(human_count(std::nullopt), "n/a");
  EXPECT_EQ(human_rate(std::nullopt), "n/a");
  EXPECT_EQ(human_time(std::nullopt), "n/a");
}

}  // namespace
}  // namespace kvsyncfs
