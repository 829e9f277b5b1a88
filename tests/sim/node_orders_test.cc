// Orders of an operator over a simulated etcd.
#include "engine/cluster/node_orders.h"

#include <gtest/gtest.h>

#include "engine/log/etcd/etcd_log.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

class NodeOrdersTest : public ::testing::Test {
 protected:
  NodeOrdersTest() { EXPECT_TRUE(format_etcd_log(*client, clock, "v", 1, {})); }

  std::uint64_t deadline() { return clock.boot_ns() + kSecond; }
  NodeOrders read() {
    const auto orders = store.read(deadline());
    EXPECT_TRUE(orders) << describe(orders.error());
    return orders ? *orders : NodeOrders{};
  }
  void pass(std::uint64_t seconds) {
    for (; seconds > 0; --seconds) {
      clock.advance(kSecond);
      etcd.tick();
    }
  }

  SimClock clock;
  SimEtcd etcd{clock, 1};
  std::unique_ptr<etcd::EtcdClient> client = etcd.client();
  NodeOrderStore store{*client, clock, "v"};
};

TEST_F(NodeOrdersTest, OrdersAreReadUntilTheyAreTakenBack) {
  EXPECT_EQ(read(), NodeOrders{});
  ASSERT_TRUE(store.drain("a", deadline()));
  ASSERT_TRUE(store.begin_maintenance("b", 60, deadline()));
  ASSERT_TRUE(store.replace("c", 77, deadline()));
  ASSERT_TRUE(store.set_heal_rate(1 << 20, deadline()));
  const NodeOrders all{{"a"}, {"b"}, {{"c", 77}}, 1 << 20, {}};
  EXPECT_EQ(read(), all);
  ASSERT_TRUE(store.end_drain("a", deadline()));
  ASSERT_TRUE(store.end_maintenance("b", deadline()));
  EXPECT_TRUE(read().draining.empty());
  EXPECT_TRUE(read().maintained.empty());
}

TEST_F(NodeOrdersTest, AMaintenanceEndsWithItsTimeAndADrainDoesNot) {
  ASSERT_TRUE(store.drain("a", deadline()));
  ASSERT_TRUE(store.begin_maintenance("a", 30, deadline()));
  pass(20);
  EXPECT_EQ(read().maintained.count("a"), 1u);
  pass(20);
  EXPECT_TRUE(read().maintained.empty());
  EXPECT_EQ(read().draining.count("a"), 1u);
  EXPECT_EQ(store.begin_maintenance("a", 0, deadline()).error().code, Code::kInvalid);
}

/// A session of node a with a lease of 5 s.
class EvictionTest : public NodeOrdersTest {
 protected:
  Result<std::unique_ptr<EtcdLog>> open(std::uint64_t incarnation) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = "a";
    options.incarnation = incarnation;
    options.timeout_ns = kSecond;
    options.sent_away_by = eviction_key("v", "a");
    auto log = EtcdLog::open(*client, clock, options);
    EXPECT_TRUE(!log || (*log)->start({}, [](Position, std::string_view) {}));
    return log;
  }
};

TEST_F(EvictionTest, ANodeThatIsSentAwayAppendsNothingMoreAndKeepsNoLease) {
  const auto log = open(1);
  ASSERT_TRUE(log) << describe(log.error());
  ASSERT_TRUE((*log)->append("before"));
  ASSERT_TRUE(store.evict("a", deadline()));
  EXPECT_TRUE(read().evicted.contains("a"));
  const auto appended = (*log)->append("after");
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, Code::kFenced);
  EXPECT_FALSE((*log)->lease_is_valid());
}

TEST_F(EvictionTest, ANodeThatOnlyRenewsItsLeaseFindsOutAndNobodyEndsItsSessionBefore) {
  const auto log = open(1), other = [&] {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = "b";
    options.incarnation = 1;
    options.timeout_ns = kSecond;
    return EtcdLog::open(*client, clock, options);
  }();
  ASSERT_TRUE(log && other);
  ASSERT_TRUE((*other)->start({}, [](Position, std::string_view) {}));
  ASSERT_TRUE(store.evict("a", deadline()));
  EXPECT_EQ((*other)->append_end("end", "a", 1).error().code, Code::kBusy);
  pass(2);
  static_cast<void>((*log)->run_keep_alive());
  EXPECT_FALSE((*log)->lease_is_valid());
  static_cast<void>((*other)->run_keep_alive());
  EXPECT_EQ((*other)->append_end("end", "a", 1).error().code, Code::kBusy) << "its lease holds";
  pass(4);
  EXPECT_TRUE((*other)->append_end("end", "a", 1));
}

TEST_F(EvictionTest, NoLifeBeginsUntilTheNodeIsCalledBack) {
  ASSERT_TRUE(open(1));
  ASSERT_TRUE(store.evict("a", deadline()));
  const auto refused = open(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotPermitted);
  EXPECT_NE(refused.error().detail.find("evict --cancel"), std::string::npos);
  ASSERT_TRUE(store.end_eviction("a", deadline()));
  EXPECT_TRUE(open(3));
}

TEST_F(EvictionTest, ASessionGoesOnInTheNextOnlyWhenTheNodeIsCalledBack) {
  const auto log = open(1);
  ASSERT_TRUE(log);
  ASSERT_TRUE(store.evict("a", deadline()));
  EXPECT_FALSE((*log)->append("after"));
  const auto go_on = [] { return Status{}; };
  EXPECT_EQ((*log)->rejoin(2, go_on).error().code, Code::kNotPermitted);
  EXPECT_EQ((*log)->append("still").error().code, Code::kFenced);
  ASSERT_TRUE(store.end_eviction("a", deadline()));
  EXPECT_TRUE((*log)->rejoin(3, go_on));
  EXPECT_TRUE((*log)->append("again"));
}

TEST_F(NodeOrdersTest, KeysThatSayNothingAreLeftOut) {
  etcd::Txn txn;
  for (const char* key : {"drain/", "drain/a/b", "fly/a", "rate"})
    txn.success.push_back(etcd::Put{std::string("/kvsyncfs/v/orders/") + key, "x"});
  txn.success.push_back(etcd::Put{"/kvsyncfs/v/orders/replace/a", "12x"});
  ASSERT_TRUE(etcd.carry_out(txn));
  EXPECT_EQ(read(), NodeOrders{});
}

}  // namespace
}  // namespace kvsyncfs
