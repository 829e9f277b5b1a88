// The nodes of a volume, as etcd tells them to a program that has only a store's configuration.
// Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/format/cluster_config.h"

namespace kvsyncfs {

namespace etcd {
class EtcdClient;
}

/// What a node that is mounted tells of itself.
struct NodeState {
  std::vector<std::string> addresses;  ///< best first
  std::uint64_t capacity_bytes = 0, free_bytes = 0;
  std::string version;  ///< of its program
};

struct ClusterNode {
  std::string name;
  NodeRecord record;
  std::optional<NodeState> member;  ///< nothing: it is away
  bool is_draining = false;         ///< its copies are being made elsewhere
  bool is_maintained = false;       ///< its absence is planned
  bool is_evicted = false;          ///< it was sent away
};

/// All nodes of the volume, by id, as they are now or were within a lease. A node whose
/// line this version cannot read is away. Errors: kTimeout (within kEtcdTimeoutNs), kAccess, other
/// errors of etcd, all with the endpoints in front; kNotFound, kInvalid (a file that the
/// configuration names).
Result<std::vector<ClusterNode>> list_cluster_nodes(Disk& disk, Clock& clock,
                                                    const ClusterConfig& config);
Result<std::vector<ClusterNode>> list_cluster_nodes(Clock& clock, etcd::EtcdClient& client,
                                                    const ClusterConfig& config);

/// Takes a node out of the volume that is away and is not to come back: what it held is copied anew
/// from the other holders without waiting for `heal_delay`, the log waits for it no more, and its
/// store is refused from now on. Errors: kNotFound (no such node), kBusy (its session lives),
/// kInvalid (it is the only node), those of list_cluster_nodes().
Status remove_cluster_node(Disk& disk, Clock& clock, const ClusterConfig& config,
                           const std::string& node);
Status remove_cluster_node(Clock& clock, etcd::EtcdClient& client, const ClusterConfig& config,
                           const std::string& node);

}  // namespace kvsyncfs
