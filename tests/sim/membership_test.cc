// Membership over a simulated etcd.
#include "engine/cluster/membership.h"

#include <gtest/gtest.h>

#include "engine/log/etcd/etcd_log.h"
#include "engine/log/etcd/log_keys.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

class MembershipTest : public ::testing::Test {
 protected:
  MembershipTest() { EXPECT_TRUE(format_etcd_log(*client, clock, "v", 1, {})); }

  std::uint64_t deadline() { return clock.boot_ns() + kSecond; }

  /// A new life of the node.
  std::unique_ptr<EtcdLog> open_log(const std::string& node) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = node;
    const auto incarnation = next_incarnation(*client, clock, "v", node, 1);
    EXPECT_TRUE(incarnation);
    options.incarnation = *incarnation;
    auto log = EtcdLog::open(*client, clock, options);
    EXPECT_TRUE(log) << describe(log.error());
    return std::move(*log);
  }
  static Member member(std::uint64_t id, std::uint64_t incarnation = 1) {
    return {NodeId{id},
            "n" + std::to_string(id),
            Incarnation{incarnation},
            {"10.0.0.1:7420"},
            "r" + std::to_string(id % 2),
            64ull << 30,
            32ull << 30,
            "0.1.0"};
  }
  void put(const std::string& name, const std::string& line) {
    etcd::Txn txn;
    txn.success = {etcd::Put{"/kvsyncfs/v/members/" + name, line}};
    ASSERT_TRUE(etcd.carry_out(txn));
  }
  std::shared_ptr<const ClusterMap> read(Membership& membership) {
    const Status status = membership.refresh(deadline());
    EXPECT_TRUE(status) << describe(status.error());
    return membership.map();
  }

  SimClock clock;
  SimEtcd etcd{clock, 1};
  std::unique_ptr<etcd::EtcdClient> client = etcd.client();
  Membership here{*client, clock, "v"}, there{*client, clock, "v"};
};

TEST_F(MembershipTest, WhatOneNodeAnnouncesTheOthersRead) {
  EXPECT_EQ(here.map()->epoch, 0u);
  EXPECT_EQ(here.read_ns(), 0u);
  const auto second = open_log("n2"), first = open_log("n1");
  ASSERT_TRUE(there.announce(member(2), second->lease(), deadline()));
  ASSERT_TRUE(here.announce(member(1), first->lease(), deadline()));
  const auto map = read(here);
  EXPECT_EQ(map->members, (std::vector{member(1), member(2)}));
  EXPECT_EQ(*map->find(NodeId{2}), member(2));
  EXPECT_EQ(map->find(NodeId{3}), nullptr);
  EXPECT_GT(here.read_ns(), 0u);
}

TEST_F(MembershipTest, TheEpochGrowsByOneWithEachChangeAndWithNothingElse) {
  const auto log = open_log("n1");
  EXPECT_EQ(read(here)->epoch, 1u);  // nobody is what it read
  ASSERT_TRUE(here.announce(member(1), log->lease(), deadline()));
  EXPECT_EQ(read(here)->epoch, 2u);
  ASSERT_TRUE(here.announce(member(1), log->lease(), deadline()));
  const auto map = read(here);
  EXPECT_EQ(map->epoch, 2u);
  Member changed = member(1);
  changed.free_bytes = 1;
  ASSERT_TRUE(here.announce(changed, log->lease(), deadline()));
  EXPECT_EQ(read(here)->epoch, 3u);
  EXPECT_EQ(map->members, std::vector{member(1)});  // a map that somebody has does not change
}

TEST_F(MembershipTest, ALineThatIsThereIsNotWrittenAgain) {
  const auto log = open_log("n1");
  ASSERT_TRUE(here.announce(member(1), log->lease(), deadline()));
  (void)read(here);
  const std::int64_t revision = etcd.revision();
  ASSERT_TRUE(here.announce(member(1), log->lease(), deadline()));
  EXPECT_EQ(etcd.revision(), revision);
  Member changed = member(1);
  changed.free_bytes = 1;
  put("n1", *encode_member(changed));  // a call that came late
  (void)read(here);
  ASSERT_TRUE(here.announce(member(1), log->lease(), deadline()));
  EXPECT_EQ(read(here)->members, std::vector{member(1)});
}

TEST_F(MembershipTest, AMemberGoesWithItsLease) {
  const auto first = open_log("n1"), second = open_log("n2");
  ASSERT_TRUE(here.announce(member(1), first->lease(), deadline()));
  ASSERT_TRUE(there.announce(member(2), second->lease(), deadline()));
  ASSERT_TRUE(first->leave());
  EXPECT_EQ(read(here)->members, std::vector{member(2)});
  clock.advance(10 * kSecond);
  EXPECT_TRUE(read(here)->members.empty());
}

TEST_F(MembershipTest, ALifeThatIsOverAnnouncesNothingAnyMore) {
  const auto old = open_log("n1");
  ASSERT_TRUE(here.announce(member(1, 1), old->lease(), deadline()));
  const auto renewed = open_log("n1");
  ASSERT_TRUE(there.announce(member(1, 2), renewed->lease(), deadline()));
  const Status late = here.announce(member(1, 1), old->lease(), deadline());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kFenced);
  clock.advance(3 * kSecond);
  (void)renewed->run_keep_alive();
  clock.advance(3 * kSecond);  // the old lease has ended meanwhile
  EXPECT_EQ(read(here)->members, std::vector(1, member(1, 2)));
}

TEST_F(MembershipTest, AnAnnouncementWithoutALeaseThatLivesIsFenced) {
  const auto log = open_log("n1");
  const Status wrong = here.announce(member(1), log->lease() + 100, deadline());
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kFenced);
  Member nameless = member(1);
  nameless.name.clear();
  EXPECT_EQ(here.announce(nameless, log->lease(), deadline()).error().code, Code::kInvalid);
  EXPECT_TRUE(read(here)->members.empty());
}

TEST_F(MembershipTest, ALineThatCannotBeReadHidesNoOtherNode) {
  put("n9", "{}");
  EXPECT_EQ(read(here)->epoch, 1u);
  put("n8", "{}");
  EXPECT_EQ(read(here)->epoch, 2u);  // somebody came, whoever it is
  etcd::Txn txn;
  txn.success = {etcd::Delete{"/kvsyncfs/v/members/n8", "/kvsyncfs/v/members/n9~"}};
  ASSERT_TRUE(etcd.carry_out(txn));
  const auto log = open_log("n4");
  ASSERT_TRUE(here.announce(member(4), log->lease(), deadline()));
  put("n1", "{}");
  put("n2", R"({"format":9})");
  put("n3", *encode_member(member(5)));  // another one's name
  Member twin = member(4);
  twin.name = "n5";
  put("n5", *encode_member(twin));
  const auto map = read(here);
  EXPECT_EQ(map->members, std::vector{member(4)});
  EXPECT_EQ(map->unreadable, (std::vector<std::string>{"n1", "n2", "n3", "n5"}));
  put("n1", *encode_member(member(1)));
  EXPECT_EQ(read(here)->epoch, map->epoch + 1);
}

TEST_F(MembershipTest, MoreNodesThanAVolumeHasAreRefused) {
  for (std::int64_t i = 1; i <= kMembersMax; ++i) {
    const Member some = member(static_cast<std::uint64_t>(i));
    put(some.name, *encode_member(some));
  }
  EXPECT_EQ(read(here)->members.size(), static_cast<std::size_t>(kMembersMax));
  put("zz", "{}");
  const Status status = here.refresh(deadline());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kTooBig);
  EXPECT_EQ(here.map()->members.size(), static_cast<std::size_t>(kMembersMax));
}

TEST_F(MembershipTest, AReadingThatIsOvertakenDoesNotReplaceTheLater) {
  put("n1", "{}");
  bool is_nested = false;
  etcd.meanwhile = [&, calls = 0]() mutable {
    if (is_nested || ++calls != 2) return;  // our reading has its answer
    is_nested = true;
    put("n1", *encode_member(member(1)));
    ASSERT_TRUE(here.refresh(deadline()));
  };
  ASSERT_TRUE(here.refresh(deadline()));
  EXPECT_EQ(here.map()->members, std::vector{member(1)});
}

TEST_F(MembershipTest, WithoutQuorumTheMapStays) {
  const auto log = open_log("n1");
  ASSERT_TRUE(here.announce(member(1), log->lease(), deadline()));
  const auto map = read(here);
  etcd.lose_quorum();
  Member changed = member(1);
  changed.free_bytes = 1;
  EXPECT_EQ(here.announce(changed, log->lease(), deadline()).error().code, Code::kTimeout);
  EXPECT_EQ(here.refresh(deadline()).error().code, Code::kTimeout);
  EXPECT_EQ(here.map(), map);
}

TEST_F(MembershipTest, PlacementSeesTheMembersWithTheirRacksAndWeights) {
  for (std::uint64_t id : {1, 2}) {
    Member some = member(id);
    if (id == 2) some.free_bytes = 0;
    put(some.name, *encode_member(some));
  }
  const auto map = read(here);
  const auto candidates = placement_candidates(*map);
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].node, NodeId{1});
  EXPECT_EQ(candidates[0].rack, "r1");
  EXPECT_EQ(candidates[0].weight, 64.0);
  EXPECT_EQ(candidates[1].weight, 0.0);
}

}  // namespace
}  // namespace kvsyncfs
