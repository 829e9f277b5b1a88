// Nodes that were taken out of the volume for good, as this one learns of them.
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_impl.h"

namespace kvsyncfs {

/// etcd is asked only while the catalog knows a node that is neither up nor removed.
Status EngineImpl::look_for_removed() {
  const auto map = cluster_->membership.map();
  const auto sessions = catalog_->sessions();
  const bool all_are_known = std::all_of(sessions.begin(), sessions.end(), [&](const auto& each) {
    return map->find(each.first) != nullptr || is_removed(each.first);
  });
  if (all_are_known) return {};
  KVSYNCFS_ASSIGN(const auto removed,
                  cluster_->records.removed(clock_.boot_ns() + options_.timeout_ns / 3));
  for (const NamedNode& node : removed) {
    {
      std::lock_guard lock(cluster_->mutex);
      if (!cluster_->removed.emplace(node.record.id, node.name).second) continue;
    }
    cluster_->addresses.erase(node.record.id);
    cluster_->down_since_ns.erase(node.record.id);
    cluster_->seams.transport.remove_peer(node.record.id);
    options_.warn(fmt::format("node {} was removed from the volume", node.name));
  }
  return {};
}

bool EngineImpl::is_removed(NodeId node) const {
  std::lock_guard lock(cluster_->mutex);
  return cluster_->removed.contains(node);
}

}  // namespace kvsyncfs
