// The lives of a node over a simulated etcd.
#include <gtest/gtest.h>

#include "engine/log/etcd/etcd_log.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

class NextIncarnation : public ::testing::Test {
 protected:
  NextIncarnation() { EXPECT_TRUE(format_etcd_log(*client, clock, "v", 1, {})); }

  std::uint64_t next(const std::string& node = "a") {
    const auto incarnation = next_incarnation(*client, clock, "v", node, 1);
    EXPECT_TRUE(incarnation) << describe(incarnation.error());
    return incarnation ? *incarnation : 0;
  }
  Result<std::unique_ptr<EtcdLog>> open(std::uint64_t incarnation, const std::string& node = "a") {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = node;
    options.incarnation = incarnation;
    options.lease_ttl_s = 60;
    options.timeout_ns = 1'000'000'000;
    return EtcdLog::open(*client, clock, options);
  }
  Code open_error(std::uint64_t incarnation) {
    const auto log = open(incarnation);
    return log ? Code{} : log.error().code;
  }

  SimClock clock;
  SimEtcd etcd{clock, 1};
  std::unique_ptr<etcd::EtcdClient> client = etcd.client();
};

TEST_F(NextIncarnation, ItGrowsWithEveryLifeOfTheNodeAndWithNothingElse) {
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 1u);  // asking is no life
  ASSERT_TRUE(open(1));
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next("b"), 1u);
  const auto second = open(2);
  ASSERT_TRUE(second);
  ASSERT_TRUE((*second)->leave());
  EXPECT_EQ(next(), 3u);
}

TEST_F(NextIncarnation, OfTwoLivesThatWereToldTheSameOnlyOneGetsIn) {
  const std::uint64_t told = next();
  const auto first = open(told);
  ASSERT_TRUE(first);
  EXPECT_EQ(open_error(told), Code::kBusy);
  ASSERT_TRUE((*first)->leave());  // no session any more, and still not the other's
  EXPECT_EQ(open_error(told), Code::kBusy);
  EXPECT_EQ(open_error(next()), Code{});
}

TEST_F(NextIncarnation, ALifeThatIsNoLaterOneIsRefused) {
  ASSERT_TRUE(open(16));
  EXPECT_EQ(open_error(15), Code::kBusy);
  EXPECT_EQ(open_error(17), Code{});
}

TEST_F(NextIncarnation, ALifeThatBeginsLateHasItsNumberForItself) {
  etcd.faults.late_request = 1;
  EXPECT_EQ(open_error(next()), Code::kTimeout);
  etcd.faults = {};
  const std::uint64_t told = next();
  EXPECT_EQ(told, 1u);
  clock.advance(30'000'000'000);
  etcd.tick();  // now the request is carried out
  EXPECT_EQ(open_error(told), Code::kBusy);
  EXPECT_EQ(open_error(next()), Code{});
}

TEST_F(NextIncarnation, NamesThatAreNoneAreRefused) {
  EXPECT_EQ(next_incarnation(*client, clock, "v/", "a", 1).error().code, Code::kInvalid);
  EXPECT_EQ(next_incarnation(*client, clock, "v", "", 1).error().code, Code::kInvalid);
  etcd.lose_quorum();
  EXPECT_EQ(next_incarnation(*client, clock, "v", "a", 1).error().code, Code::kTimeout);
}

}  // namespace
}  // namespace kvsyncfs
