#include "engine/unreferenced_appends.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "tests/lib/ticking_clock.h"

namespace kvsyncfs {
namespace {

class UnreferencedAppendsTest : public ::testing::Test {
 protected:
  void SetUp() override { clock_.tick(); }
  bool have_ended() { return appends_.wait_for_earlier(Deadline(clock_, 3'000'000'000)); }

  TickingClock clock_;
  UnreferencedAppends appends_;
};

TEST_F(UnreferencedAppendsTest, ADeletionWaitsForWhatBeganBefore) {
  EXPECT_TRUE(have_ended());
  UnreferencedAppends::Hold append(appends_);
  EXPECT_FALSE(have_ended());
  append.end();
  EXPECT_TRUE(have_ended());
}

TEST_F(UnreferencedAppendsTest, AnAppendIsHeldByWhoItWasMovedTo) {
  UnreferencedAppends::Hold append(appends_);
  {
    const UnreferencedAppends::Hold moved(std::move(append));
    append.end();
    EXPECT_FALSE(have_ended());
  }
  EXPECT_TRUE(have_ended());
}

/// Looked at once where a deadline is made, and again by who waits until then.
class StandingClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t boot_ns() override {
    ++looks_;
    looks_.notify_all();
    return 1;
  }
  void wait_for_looks(int count) {
    for (int now = looks_; now < count; now = looks_) looks_.wait(now);
  }

 private:
  std::atomic<int> looks_ = 0;
};

/// Neither waits for the other.
TEST_F(UnreferencedAppendsTest, AnAppendBeginsWhileADeletionWaits) {
  StandingClock clock;
  UnreferencedAppends::Hold first(appends_);
  std::thread deletion(
      [&] { EXPECT_TRUE(appends_.wait_for_earlier(Deadline(clock, 3'000'000'000))); });
  clock.wait_for_looks(2);
  const UnreferencedAppends::Hold later(appends_);
  first.end();
  deletion.join();
}

}  // namespace
}  // namespace kvsyncfs
