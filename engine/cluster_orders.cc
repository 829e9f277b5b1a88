#include "engine/cluster_orders.h"

#include <fmt/format.h>

#include "engine/cluster/etcd_access.h"
#include "engine/cluster/node_orders.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_store.h"

namespace kvsyncfs {
namespace {

Status check_drain(VolumeRecordStore& records, NodeOrderStore& orders, const std::string& node,
                   std::uint64_t until_ns) {
  KVSYNCFS_ASSIGN(const VolumeRecord volume, records.volume(until_ns));
  KVSYNCFS_ASSIGN(const auto nodes, records.nodes(until_ns));
  KVSYNCFS_ASSIGN(const NodeOrders now, orders.read(until_ns));
  std::size_t left = 0;
  for (const NamedNode& named : nodes)
    if (named.name != node && !now.draining.contains(named.name)) ++left;
  if (left >= volume.replicas) return {};
  return Error(Code::kNoSpace, fmt::format("{} nodes would be left for the {} copies of a volume",
                                           left, volume.replicas));
}

Status give(etcd::EtcdClient& client, Clock& clock, const std::string& volume,
            const std::string& node, NodeOrder order, std::int64_t seconds) {
  const std::uint64_t until_ns = clock.boot_ns() + kEtcdTimeoutNs;
  VolumeRecordStore records(client, clock, volume);
  NodeOrderStore orders(client, clock, volume);
  KVSYNCFS_TRY(records.node(node, until_ns));
  switch (order) {
    case NodeOrder::kDrain:
      KVSYNCFS_TRY(check_drain(records, orders, node, until_ns));
      return orders.drain(node, until_ns);
    case NodeOrder::kEndDrain:
      return orders.end_drain(node, until_ns);
    case NodeOrder::kMaintenance:
      return orders.begin_maintenance(node, seconds, until_ns);
    case NodeOrder::kEndMaintenance:
      return orders.end_maintenance(node, until_ns);
    case NodeOrder::kEvict:
      return orders.evict(node, until_ns);
    case NodeOrder::kEndEviction:
      return orders.end_eviction(node, until_ns);
  }
  return Error(Code::kUnsupported, "the order");
}

}  // namespace

Status give_order(Disk& disk, Clock& clock, const ClusterConfig& config, const std::string& node,
                  NodeOrder order, std::int64_t seconds) {
  KVSYNCFS_ASSIGN(const auto client, connect_etcd(disk, clock, config));
  const Status given = give(*client, clock, config.volume, node, order, seconds);
  return given ? given : with_endpoints(config, given.error());
}

}  // namespace kvsyncfs
