#include "engine/env/progress_bar.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

TEST(ProgressLine, ShowsShareAndTimeLeft) {
  EXPECT_EQ(progress_line("check", 0, 100, 0, 10), "check [          ]   0 %");
  EXPECT_EQ(progress_line("check", 50, 100, 10 * kSecondNs, 10),
            "check [#####     ]  50 %, 11 s left");
  EXPECT_EQ(progress_line("check", 100, 100, kSecondNs, 10), "check [##########] 100 %");
}

TEST(ProgressLine, LongTimesInMinutesAndHours) {
  EXPECT_NE(progress_line("c", 1, 10, 60 * kSecondNs, 10).find("9 min left"), std::string::npos);
  EXPECT_NE(progress_line("c", 1, 10, 3600 * kSecondNs, 10).find("9 h 0 min left"),
            std::string::npos);
}

TEST(ProgressLine, NoEstimateFromTooLittle) {
  EXPECT_EQ(progress_line("c", 1, 1000, 60 * kSecondNs, 10).find("left"), std::string::npos);
  EXPECT_EQ(progress_line("c", 50, 100, kSecondNs / 2, 10).find("left"), std::string::npos);
}

TEST(ProgressLine, OddTotalsStayInBounds) {
  EXPECT_EQ(progress_line("c", 0, 0, 0, 4), "c [####] 100 %");
  EXPECT_EQ(progress_line("c", 7, 5, 0, 4), "c [####] 100 %");
}

/// Time stands still: whether something is drawn depends on the terminal alone.
class StoppedClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t boot_ns() override { return kSecondNs; }
};

TEST(ProgressBar, DrawsNothingIntoAFile) {
  StoppedClock clock;
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    ProgressBar bar(clock, file, false);
    bar.show("check", 1, 2);
    bar.clear();
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace kvsyncfs
