// The list of members in a real etcd.
#include "engine/cluster/membership.h"

#include "tests/cluster/etcd_fixture.h"

namespace kvsyncfs {
namespace {

class MembershipCluster : public EtcdLogCluster {
 protected:
  /// A new life of the node, of a short lease.
  std::unique_ptr<EtcdLog> open_log(etcd::EtcdClient& client, const std::string& name) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = name;
    options.lease_ttl_s = 2;
    const auto incarnation = next_incarnation(client, *clock, "v", name, 1);
    EXPECT_TRUE(incarnation);
    options.incarnation = *incarnation;
    auto log = EtcdLog::open(client, *clock, options);
    EXPECT_TRUE(log) << describe(log.error());
    return log ? std::move(*log) : nullptr;
  }
  static Member member(std::uint64_t id, std::uint64_t incarnation) {
    return {NodeId{id},
            "n" + std::to_string(id),
            Incarnation{incarnation},
            {"10.0.0.1:7420"},
            "r",
            1u << 30,
            1u << 29,
            "0.1.0"};
  }
  std::uint64_t deadline() { return clock->boot_ns() + 5 * kSecond; }
};

TEST_F(MembershipCluster, MembersComeAndGoWithTheirSessions) {
  start_servers(1);
  const auto client = make_client();
  Membership membership(*client, *clock, "v");
  const auto first = open_log(*client, "n1"), second = open_log(*client, "n2");
  ASSERT_TRUE(membership.announce(member(1, 1), first->lease(), deadline()));
  ASSERT_TRUE(membership.announce(member(2, 1), second->lease(), deadline()));
  ASSERT_TRUE(membership.refresh(deadline()));
  EXPECT_EQ(membership.map()->members, (std::vector{member(1, 1), member(2, 1)}));

  ASSERT_TRUE(first->leave());
  ASSERT_TRUE(membership.refresh(deadline()));
  const Status gone = membership.announce(member(1, 1), first->lease(), deadline());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kFenced);
  const auto renewed = open_log(*client, "n1");
  ASSERT_TRUE(membership.announce(member(1, 2), renewed->lease(), deadline()));
  const std::uint64_t until_ns = clock->boot_ns() + 30 * kSecond;  // nobody renews the leases
  ASSERT_TRUE(membership.refresh(deadline()));
  EXPECT_NE(membership.map()->find(NodeId{1}), nullptr);
  EXPECT_EQ(membership.map()->find(NodeId{1})->incarnation, Incarnation{2});
  while (!membership.map()->members.empty() && clock->boot_ns() < until_ns) {
    ASSERT_TRUE(client->range({"/wait", {}}, deadline()));
    ASSERT_TRUE(membership.refresh(deadline()));
  }
  EXPECT_TRUE(membership.map()->members.empty());
  const Status late = membership.announce(member(2, 1), second->lease(), deadline());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kFenced);
}

TEST_F(MembershipCluster, ALeaseThatEtcdDoesNotKnowFences) {
  start_servers(1);
  const auto client = make_client();
  Membership membership(*client, *clock, "v");
  const auto log = open_log(*client, "n1");
  const Status status = membership.announce(member(1, 1), log->lease() + 1, deadline());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kFenced) << describe(status.error());
}

}  // namespace
}  // namespace kvsyncfs
