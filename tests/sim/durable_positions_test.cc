// Durable positions over a simulated etcd.
#include "engine/cluster/durable_positions.h"

#include <gtest/gtest.h>

#include "engine/log/etcd/etcd_log.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

class DurablePositionsTest : public ::testing::Test {
 protected:
  DurablePositionsTest() { EXPECT_TRUE(format_etcd_log(*client, clock, "v", 1, {})); }

  std::uint64_t deadline() { return clock.boot_ns() + kSecond; }
  std::unique_ptr<EtcdLog> open_log(const std::string& node, std::uint64_t incarnation) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = node;
    options.incarnation = incarnation;
    auto log = EtcdLog::open(*client, clock, options);
    EXPECT_TRUE(log) << describe(log.error());
    return std::move(*log);
  }
  Status announce(const std::string& node, std::uint64_t incarnation, std::uint64_t position) {
    return positions.announce(node, Incarnation{incarnation}, Position{position}, deadline());
  }

  SimClock clock;
  SimEtcd etcd{clock, 1};
  std::unique_ptr<etcd::EtcdClient> client = etcd.client();
  DurablePositions positions{*client, "v", 1};
};

TEST_F(DurablePositionsTest, WhatNodesAnnounceIsReadByTheirNames) {
  const auto first = open_log("n1", 1), second = open_log("n2", 1);
  EXPECT_TRUE(positions.needs(deadline())->durable.empty());
  ASSERT_TRUE(announce("n1", 1, 7));
  ASSERT_TRUE(announce("n2", 1, 5));
  ASSERT_TRUE(announce("n1", 1, 12));
  EXPECT_EQ(positions.needs(deadline())->durable, (PositionMap{{"n1", {12}}, {"n2", {5}}}));
}

TEST_F(DurablePositionsTest, APositionOutlivesTheSessionThatAnnouncedIt) {
  const auto log = open_log("n1", 1);
  ASSERT_TRUE(announce("n1", 1, 7));
  ASSERT_TRUE(log->leave());
  clock.advance(10 * kSecond);
  etcd.tick();
  EXPECT_EQ(positions.needs(deadline())->durable, (PositionMap{{"n1", {7}}}));
}

TEST_F(DurablePositionsTest, ALifeThatIsOverAnnouncesNothingAnyMore) {
  const auto old = open_log("n1", 1);
  ASSERT_TRUE(announce("n1", 1, 7));
  const auto renewed = open_log("n1", 2);
  const Status late = announce("n1", 1, 9);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kFenced);
  EXPECT_EQ(positions.needs(deadline())->durable, (PositionMap{{"n1", {7}}}));
  ASSERT_TRUE(announce("n1", 2, 9));
}

TEST_F(DurablePositionsTest, WhatIsNoNumberIsCorrupt) {
  etcd::Txn txn;
  txn.success = {etcd::Put{"/kvsyncfs/v/durable/n1", "7x"}};
  ASSERT_TRUE(etcd.carry_out(txn));
  EXPECT_EQ(positions.needs(deadline()).error().code, Code::kCorrupt);
}

LogNeeds three_nodes() {
  LogNeeds needs;
  needs.nodes = needs.up = {"n1", "n2", "n3"};
  needs.durable = {{"n1", {7}}, {"n2", {5}}, {"n3", {6}}};
  return needs;
}

TEST_F(DurablePositionsTest, TheLogGoesUpToWhatAllHaveThatAreUp) {
  LogNeeds needs = three_nodes();
  EXPECT_EQ(log_limit(needs, 2).position, Position{5});
  EXPECT_EQ(log_limit(needs, 2).node, "n2");
  needs.durable.erase("n3");
  EXPECT_EQ(log_limit(needs, 2).position, Position{0}) << "it is up and told nothing";
  EXPECT_EQ(log_limit(needs, 2).node, "n3");
}

TEST_F(DurablePositionsTest, ANodeThatIsAwayHoldsNothingWhereEnoughOthersHaveIt) {
  LogNeeds needs = three_nodes();
  needs.up.erase("n2");
  EXPECT_EQ(log_limit(needs, 2).position, Position{6});
  needs.up.erase("n3");
  EXPECT_EQ(log_limit(needs, 2).position, Position{6}) << "two catalogs on disk have it";
  EXPECT_EQ(log_limit(needs, 2).node, "n3");
  EXPECT_EQ(log_limit(needs, 1).position, Position{7});
  EXPECT_EQ(log_limit(needs, 3).position, Position{5});
  needs.nodes = {"n1"};  // the others were removed
  EXPECT_EQ(log_limit(needs, 2).position, Position{7});
}

TEST_F(DurablePositionsTest, AMarkerHoldsTheLogForANodeThatIsOnItsWay) {
  LogNeeds needs = three_nodes();
  needs.kept = {{"n4", {3}}};
  EXPECT_EQ(log_limit(needs, 2).position, Position{3});
  EXPECT_EQ(log_limit(needs, 2).node, "n4");
  needs.kept = {{"n3", {9}}};  // it is up, and has not told yet what it took
  needs.durable.erase("n3");
  EXPECT_EQ(log_limit(needs, 2).position, Position{5});
}

TEST_F(DurablePositionsTest, WithoutNodesNothingMayGo) {
  EXPECT_EQ(log_limit({}, 2).node, "");
  EXPECT_EQ(log_limit({}, 2).position, Position{0});
}

TEST_F(DurablePositionsTest, WhoNeedsTheLogIsReadAtOneMoment) {
  const auto log = open_log("n1", 1);
  etcd::Txn txn;
  txn.success = {etcd::Put{"/kvsyncfs/v/nodes/n1", "x"}, etcd::Put{"/kvsyncfs/v/nodes/n2", "x"},
                 etcd::Put{"/kvsyncfs/v/members/n2", "x"},
                 etcd::Put{"/kvsyncfs/v/log/1/trim", "4 17"}};
  ASSERT_TRUE(etcd.carry_out(txn));
  ASSERT_TRUE(announce("n1", 1, 20));
  ASSERT_TRUE(positions.keep("n2", log->lease(), {18}, deadline()));
  const auto needs = positions.needs(deadline());
  ASSERT_TRUE(needs) << describe(needs.error());
  EXPECT_EQ(needs->trimmed, Position{17});
  EXPECT_EQ(needs->nodes, (std::set<std::string>{"n1", "n2"}));
  EXPECT_EQ(needs->up, std::set<std::string>{"n2"});
  EXPECT_EQ(needs->durable, (PositionMap{{"n1", {20}}}));
  EXPECT_EQ(needs->kept, (PositionMap{{"n2", {18}}}));
  EXPECT_EQ(needs->keep_version, 1);
}

TEST_F(DurablePositionsTest, AMarkerGoesWhenItIsLetGoOrWithItsLease) {
  const auto log = open_log("n1", 1);
  ASSERT_TRUE(positions.keep("n1", log->lease(), {3}, deadline()));
  ASSERT_TRUE(positions.let_go("n1", deadline()));
  EXPECT_TRUE(positions.needs(deadline())->kept.empty());
  ASSERT_TRUE(positions.keep("n1", log->lease(), {3}, deadline()));
  clock.advance(10 * kSecond);
  etcd.tick();
  EXPECT_TRUE(positions.needs(deadline())->kept.empty());
  EXPECT_FALSE(positions.keep("n1", log->lease(), {3}, deadline())) << "its lease is gone";
}

TEST_F(DurablePositionsTest, WhoTrimsDoesNotPassAMarkerThatCameSinceItLooked) {
  const auto log = open_log("n1", 1);
  ASSERT_TRUE(log->start({}, [](Position, std::string_view) {}));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(log->append("entry " + std::to_string(i)));
  const auto before = positions.needs(deadline());
  ASSERT_TRUE(before);
  const auto late = open_log("n2", 1);
  ASSERT_TRUE(positions.keep("n2", late->lease(), {0}, deadline()));
  const Status refused = log->trim_if(positions.no_marker_since(*before), {150});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBusy);
  EXPECT_EQ(*positions.trimmed(deadline()), Position{0});
  const auto now = positions.needs(deadline());
  EXPECT_TRUE(log->trim_if(positions.no_marker_since(*now), {150}));
  EXPECT_GT(*positions.trimmed(deadline()), Position{0});
}

TEST_F(DurablePositionsTest, ANodeThatHasNotStartedKeepsItsLeaseHoweverFarItIsBehind) {
  const auto writer = open_log("n1", 1);
  ASSERT_TRUE(writer->start({}, [](Position, std::string_view) {}));
  ASSERT_TRUE(writer->append("entry"));
  const auto joining = open_log("n2", 1);
  for (int i = 0; i < 30; ++i) {
    clock.advance(kSecond);
    etcd.tick();
    EXPECT_NE(joining->run_keep_alive(), ~std::uint64_t{0}) << "second " << i;
  }
  EXPECT_TRUE(joining->lease_is_valid());
}

TEST_F(DurablePositionsTest, UpToWhereTheLogIsTrimmedIsRead) {
  EXPECT_EQ(*positions.trimmed(deadline()), Position{0});
  etcd::Txn txn;
  txn.success = {etcd::Put{"/kvsyncfs/v/log/1/trim", "4 17"}};
  ASSERT_TRUE(etcd.carry_out(txn));
  EXPECT_EQ(*positions.trimmed(deadline()), Position{17});
}

TEST_F(DurablePositionsTest, TheLiveMemberWithTheSmallestIdTrims) {
  Membership membership{*client, clock, "v"};
  EXPECT_FALSE(trims_log(*membership.map(), NodeId{1}));
  const auto second = open_log("n2", 1), first = open_log("n1", 1);
  const auto come = [&](std::uint64_t id, EtcdLog& log) {
    Member member;
    member.id = NodeId{id};
    member.name = "n" + std::to_string(id);
    member.incarnation = Incarnation{1};
    member.addresses = {"10.0.0.1:7420"};
    ASSERT_TRUE(membership.announce(member, log.lease(), deadline()));
    ASSERT_TRUE(membership.refresh(deadline()));
  };
  come(2, *second);
  EXPECT_TRUE(trims_log(*membership.map(), NodeId{2}));
  come(1, *first);
  EXPECT_TRUE(trims_log(*membership.map(), NodeId{1}));
  EXPECT_FALSE(trims_log(*membership.map(), NodeId{2}));
  ASSERT_TRUE(first->leave());
  ASSERT_TRUE(membership.refresh(deadline()));
  EXPECT_TRUE(trims_log(*membership.map(), NodeId{2}));
}

}  // namespace
}  // namespace kvsyncfs
