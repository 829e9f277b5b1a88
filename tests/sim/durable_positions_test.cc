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
  DurablePositions positions{*client, "v"};
};

TEST_F(DurablePositionsTest, WhatNodesAnnounceIsReadByTheirNames) {
  const auto first = open_log("n1", 1), second = open_log("n2", 1);
  EXPECT_TRUE(positions.read(deadline())->empty());
  ASSERT_TRUE(announce("n1", 1, 7));
  ASSERT_TRUE(announce("n2", 1, 5));
  ASSERT_TRUE(announce("n1", 1, 12));
  EXPECT_EQ(*positions.read(deadline()), (PositionMap{{"n1", {12}}, {"n2", {5}}}));
}

TEST_F(DurablePositionsTest, APositionOutlivesTheSessionThatAnnouncedIt) {
  const auto log = open_log("n1", 1);
  ASSERT_TRUE(announce("n1", 1, 7));
  ASSERT_TRUE(log->leave());
  clock.advance(10 * kSecond);
  etcd.tick();
  EXPECT_EQ(*positions.read(deadline()), (PositionMap{{"n1", {7}}}));
}

TEST_F(DurablePositionsTest, ALifeThatIsOverAnnouncesNothingAnyMore) {
  const auto old = open_log("n1", 1);
  ASSERT_TRUE(announce("n1", 1, 7));
  const auto renewed = open_log("n1", 2);
  const Status late = announce("n1", 1, 9);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kFenced);
  EXPECT_EQ(*positions.read(deadline()), (PositionMap{{"n1", {7}}}));
  ASSERT_TRUE(announce("n1", 2, 9));
}

TEST_F(DurablePositionsTest, WhatIsNoNumberIsCorrupt) {
  etcd::Txn txn;
  txn.success = {etcd::Put{"/kvsyncfs/v/durable/n1", "7x"}};
  ASSERT_TRUE(etcd.carry_out(txn));
  EXPECT_EQ(positions.read(deadline()).error().code, Code::kCorrupt);
}

TEST_F(DurablePositionsTest, ANodeOfWhichNothingIsToldHasNothing) {
  std::vector<NamedNode> nodes = {{"n1", {}}, {"n2", {}}, {"n3", {}}};
  const LeastDurable least = least_durable(nodes, {{"n1", {7}}, {"n2", {5}}, {"n3", {6}}}, {});
  EXPECT_EQ(least.position, Position{5});
  EXPECT_EQ(least.node, "n2");
  const LeastDurable away = least_durable(nodes, {{"n1", {7}}, {"n2", {5}}, {"other", {0}}}, {});
  EXPECT_EQ(away.position, Position{0});
  EXPECT_EQ(away.node, "n3");
}

TEST_F(DurablePositionsTest, ANodeThatCameAfterTheTrimmingKeepsNothing) {
  std::vector<NamedNode> nodes = {{"n1", {}}, {"n2", {}}, {"late", {}}};
  const LeastDurable least = least_durable(nodes, {{"n1", {7}}, {"n2", {5}}}, Position{3});
  EXPECT_EQ(least.position, Position{5});
  EXPECT_EQ(least.node, "n2");
  // One that told a position is never passed over, not even if an old one came late.
  EXPECT_EQ(least_durable(nodes, {{"n1", {7}}, {"n2", {2}}}, Position{3}).node, "n2");
  EXPECT_EQ(least_durable(nodes, {}, Position{3}).node, "");
  EXPECT_EQ(least_durable(nodes, {}, Position{3}).position, Position{0});
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
