#include "engine/policy/hedge.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kvsyncfs {
namespace {

RC_GTEST_PROP(Hedge, TheDelayKeepsItsBoundsAndGrowsWithWhatSlowsAPeer, ()) {
  const auto trip = *rc::gen::arbitrary<std::uint64_t>();
  const auto size = *rc::gen::arbitrary<std::size_t>();
  const auto calls = *rc::gen::arbitrary<std::uint64_t>();
  const std::uint64_t delay = hedge_delay_ns(trip, size, calls);
  RC_ASSERT(delay >= kHedgeMinNs && delay <= kHedgeMaxNs);
  RC_ASSERT(hedge_delay_ns(trip / 2, size, calls) <= delay);
  RC_ASSERT(hedge_delay_ns(trip, size / 2, calls) <= delay);
  RC_ASSERT(hedge_delay_ns(trip, size, calls / 2) <= delay);
}

TEST(Hedge, ASmallReadOfANearPeerIsHedgedAtOnce) {
  EXPECT_EQ(hedge_delay_ns(100'000, 4096, 0), kHedgeMinNs);
}

TEST(Hedge, APeerFarAwayHasLonger) { EXPECT_EQ(hedge_delay_ns(8'000'000, 0, 0), 80'000'000u); }

}  // namespace
}  // namespace kvsyncfs
