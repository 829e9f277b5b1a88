#include "engine/cluster_nodes.h"

#include <utility>

#include "engine/cluster/etcd_access.h"
#include "engine/cluster/membership.h"
#include "engine/cluster/node_orders.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_store.h"

namespace kvsyncfs {

Result<std::vector<ClusterNode>> list_cluster_nodes(Clock& clock, etcd::EtcdClient& client,
                                                    const ClusterConfig& config) {
  const std::uint64_t until_ns = clock.boot_ns() + kEtcdTimeoutNs;
  VolumeRecordStore records(client, clock, config.volume);
  auto known = records.nodes(until_ns);
  if (!known) return with_endpoints(config, known.error());
  Membership membership(client, clock, config.volume);
  const Status read = membership.refresh(until_ns);
  if (!read) return with_endpoints(config, read.error());
  const auto orders = NodeOrderStore(client, clock, config.volume).read(until_ns);
  if (!orders) return with_endpoints(config, orders.error());
  const auto map = membership.map();
  std::vector<ClusterNode> nodes;
  for (NamedNode& named : *known) {
    const Member* member = map->find(named.record.id);
    ClusterNode node{std::move(named.name), std::move(named.record), std::nullopt};
    node.is_draining = orders->draining.contains(node.name);
    node.is_evicted = orders->evicted.contains(node.name);
    node.is_maintained = orders->maintained.contains(node.name);
    if (member != nullptr)
      node.member =
          NodeState{member->addresses, member->capacity_bytes, member->free_bytes, member->version};
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<ClusterNode>> list_cluster_nodes(Disk& disk, Clock& clock,
                                                    const ClusterConfig& config) {
  KVSYNCFS_ASSIGN(const auto client, connect_etcd(disk, clock, config));
  return list_cluster_nodes(clock, *client, config);
}

Status remove_cluster_node(Clock& clock, etcd::EtcdClient& client, const ClusterConfig& config,
                           const std::string& node) {
  VolumeRecordStore records(client, clock, config.volume);
  const auto removed = records.remove(node, clock.boot_ns() + kEtcdTimeoutNs);
  if (removed) return {};
  const Code code = removed.error().code;
  const bool is_said = code == Code::kNotFound || code == Code::kBusy || code == Code::kInvalid;
  return is_said ? removed.error() : with_endpoints(config, removed.error());
}

Status remove_cluster_node(Disk& disk, Clock& clock, const ClusterConfig& config,
                           const std::string& node) {
  KVSYNCFS_ASSIGN(const auto client, connect_etcd(disk, clock, config));
  return remove_cluster_node(clock, *client, config, node);
}

}  // namespace kvsyncfs
