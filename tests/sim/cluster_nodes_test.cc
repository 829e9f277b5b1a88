// The list of a volume's nodes over a simulated etcd.
#include "engine/cluster_nodes.h"

#include <gtest/gtest.h>

#include "engine/cluster/durable_positions.h"
#include "engine/cluster/membership.h"
#include "engine/cluster/node_orders.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/log/etcd/etcd_log.h"
#include "tests/sim/engine_world.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

class ClusterNodes : public ::testing::Test {
 protected:
  ClusterNodes() {
    config_.volume = "v";
    config_.endpoints = {"h1:1", "h2:2"};
    VolumeRecord record;
    record.segment_size_bytes = kPageSize;
    EXPECT_TRUE(format_etcd_log(*client_, clock_, "v", 1, {}));
    VolumeRecordStore records(*client_, clock_, "v");
    EXPECT_TRUE(records.create(record, "b", {{}, uuid(1), "r1", {7, 8}}, deadline()));
    EXPECT_TRUE(records.add(record, "a", {{}, uuid(2), "", {}}, deadline()));
  }
  static Uuid uuid(std::uint8_t n) {
    Uuid uuid{};
    uuid[0] = n;
    return uuid;
  }
  std::uint64_t deadline() { return clock_.boot_ns() + 10 * kSecond; }
  /// A life of node "a", which has id 2.
  Result<std::unique_ptr<EtcdLog>> open_log(std::uint64_t incarnation) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = "a";
    options.incarnation = incarnation;
    options.barred_by = removal_key("v", {2}, "a");
    return EtcdLog::open(*client_, clock_, options);
  }
  Status remove(const std::string& node) {
    return remove_cluster_node(clock_, *client_, config_, node);
  }
  Result<std::vector<ClusterNode>> list() { return list_cluster_nodes(clock_, *client_, config_); }

  SimClock clock_;
  SimEtcd etcd_{clock_, 1};
  std::unique_ptr<etcd::EtcdClient> client_ = etcd_.client();
  ClusterConfig config_;
};

TEST_F(ClusterNodes, AllThatThereEverWereAreToldById) {
  const auto nodes = list();
  ASSERT_TRUE(nodes) << describe(nodes.error());
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].name, "b");
  EXPECT_EQ((*nodes)[0].record, (NodeRecord{{1}, uuid(1), "r1", {7, 8}}));
  EXPECT_EQ((*nodes)[1].name, "a");
  EXPECT_EQ((*nodes)[1].record.id, NodeId{2});
  EXPECT_FALSE((*nodes)[0].member || (*nodes)[1].member);
}

TEST_F(ClusterNodes, ANodeIsAMemberWhileItsLeaseLasts) {
  const auto log = open_log(1);
  ASSERT_TRUE(log) << describe(log.error());
  Membership membership(*client_, clock_, "v");
  const Member member{{2}, "a", {1}, {"10.0.0.2:7420"}, "r9", 1000, 400, "0.1.0"};
  ASSERT_TRUE(membership.announce(member, (*log)->lease(), deadline()));
  auto nodes = list();
  ASSERT_TRUE(nodes) << describe(nodes.error());
  EXPECT_FALSE((*nodes)[0].member);
  ASSERT_TRUE((*nodes)[1].member);
  EXPECT_EQ((*nodes)[1].member->addresses, member.addresses);
  EXPECT_EQ((*nodes)[1].member->capacity_bytes, 1000u);
  EXPECT_EQ((*nodes)[1].member->free_bytes, 400u);
  EXPECT_EQ((*nodes)[1].member->version, "0.1.0");
  EXPECT_EQ((*nodes)[1].record.rack, "") << "the record's, which is for good";
  clock_.advance(60 * kSecond);
  etcd_.tick();
  nodes = list();
  ASSERT_TRUE(nodes);
  EXPECT_FALSE((*nodes)[1].member);
}

TEST_F(ClusterNodes, AnEtcdThatDoesNotAnswerIsNamed) {
  etcd_.lose_quorum();
  const auto nodes = list();
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().code, Code::kTimeout);
  EXPECT_NE(nodes.error().detail.find("etcd at h1:1,h2:2"), std::string::npos);
}

TEST_F(ClusterNodes, ARecordThatCannotBeReadIsAnErrorThatNamesIt) {
  etcd::Txn txn;
  txn.success = {etcd::Put{"/kvsyncfs/v/nodes/a", "{}"}};
  ASSERT_TRUE(etcd_.carry_out(txn));
  const auto nodes = list();
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().code, Code::kCorrupt);
  EXPECT_NE(nodes.error().detail.find("/kvsyncfs/v/nodes/a"), std::string::npos);
}

TEST_F(ClusterNodes, ANodeIsNotRemovedWhileItsSessionLives) {
  const auto log = open_log(1);
  ASSERT_TRUE(log);
  const Status refused = remove("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBusy);
  EXPECT_NE(refused.error().detail.find("node a of volume v is up"), std::string::npos);
  EXPECT_EQ(list()->size(), 2u);
  clock_.advance(60 * kSecond);
  etcd_.tick();
  EXPECT_TRUE(remove("a")) << "its lease is gone";
}

TEST_F(ClusterNodes, ARemovedNodeIsInNoListAndNothingWaitsForItsPosition) {
  {
    const auto log = open_log(1);
    ASSERT_TRUE(log);
    DurablePositions positions(*client_, "v", 1);
    ASSERT_TRUE(positions.announce("a", {1}, {7}, deadline()));
    ASSERT_TRUE((*log)->leave());
    ASSERT_TRUE(remove("a"));
    EXPECT_TRUE(positions.needs(deadline())->durable.empty());
  }
  const auto nodes = list();
  ASSERT_TRUE(nodes);
  ASSERT_EQ(nodes->size(), 1u);
  EXPECT_EQ((*nodes)[0].name, "b");
  VolumeRecordStore records(*client_, clock_, "v");
  const auto removed = records.removed(deadline());
  ASSERT_TRUE(removed) << describe(removed.error());
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ((*removed)[0].name, "a");
  EXPECT_EQ((*removed)[0].record.id, NodeId{2});
}

TEST_F(ClusterNodes, TheStoreOfARemovedNodeIsToldSo) {
  ASSERT_TRUE(remove("a"));
  VolumeRecordStore records(*client_, clock_, "v");
  config_.node = "a";
  config_.id = {2};
  config_.store = uuid(2);
  const auto confirmed = records.confirm(config_, deadline());
  ASSERT_FALSE(confirmed);
  EXPECT_EQ(confirmed.error().code, Code::kStale);
  EXPECT_NE(confirmed.error().detail.find("node a was removed from volume v"), std::string::npos);
}

TEST_F(ClusterNodes, ARemovedNodeBeginsNoLifeEvenIfItWasConfirmedBefore) {
  ASSERT_TRUE(remove("a"));
  const auto log = open_log(1);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Code::kStale);
  EXPECT_NE(log.error().detail.find("removed"), std::string::npos);
}

TEST_F(ClusterNodes, TheNameOfARemovedNodeIsGivenAgainAndItsIdIsNot) {
  ASSERT_TRUE(remove("a"));
  VolumeRecordStore records(*client_, clock_, "v");
  const auto volume = records.volume(deadline());
  ASSERT_TRUE(volume);
  const auto id = records.add(*volume, "a", {{}, uuid(3), "", {}}, deadline());
  ASSERT_TRUE(id) << describe(id.error());
  EXPECT_EQ(*id, NodeId{3});
  config_.node = "a";
  config_.id = {3};
  config_.store = uuid(3);
  EXPECT_TRUE(records.confirm(config_, deadline()));
  ASSERT_TRUE(remove("a")) << "and the new one can be removed as well";
  EXPECT_EQ(records.removed(deadline())->size(), 2u);
}

TEST_F(ClusterNodes, TheNextNodeOfANameHasNoOrdersOfTheRemovedOne) {
  NodeOrderStore orders(*client_, clock_, "v");
  ASSERT_TRUE(orders.drain("a", deadline()));
  ASSERT_TRUE(orders.begin_maintenance("a", 60, deadline()));
  ASSERT_TRUE(orders.replace("a", 77, deadline()));
  ASSERT_TRUE(orders.drain("b", deadline()));
  ASSERT_TRUE(orders.evict("a", deadline()));
  ASSERT_TRUE(remove("a"));
  const auto left = orders.read(deadline());
  ASSERT_TRUE(left) << describe(left.error());
  EXPECT_EQ(*left, (NodeOrders{{"b"}, {}, {}, {}, {}}));
}

TEST_F(ClusterNodes, WhoIsNotThereOrAloneIsNotRemoved) {
  EXPECT_EQ(remove("nobody").error().code, Code::kNotFound);
  ASSERT_TRUE(remove("a"));
  EXPECT_EQ(remove("a").error().code, Code::kNotFound);
  EXPECT_EQ(remove("b").error().code, Code::kInvalid);
  EXPECT_EQ(list()->size(), 1u);
}

}  // namespace
}  // namespace kvsyncfs
