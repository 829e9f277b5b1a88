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
  NodeOrderStore store{*client, "v"};
};

TEST_F(NodeOrdersTest, OrdersAreReadUntilTheyAreTakenBack) {
  EXPECT_EQ(read(), NodeOrders{});
  ASSERT_TRUE(store.drain("a", deadline()));
  ASSERT_TRUE(store.begin_maintenance("b", 60, deadline()));
  ASSERT_TRUE(store.replace("c", 77, deadline()));
  ASSERT_TRUE(store.set_heal_rate(1 << 20, deadline()));
  const NodeOrders all{{"a"}, {"b"}, {{"c", 77}}, 1 << 20};
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
