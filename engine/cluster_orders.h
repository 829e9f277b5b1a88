// Orders of an operator to the nodes of a volume, by a program that has only a store's
// configuration: cluster/node_orders.h says what they mean. They take effect within seconds of
// their return. Thread: one.
//
// Errors of every call: kNotFound (no such node), kTimeout (within kEtcdTimeoutNs), kAccess, other
// errors of etcd, all with the endpoints in front; kNotFound, kInvalid (a file that the
// configuration names).
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/format/cluster_config.h"

namespace kvsyncfs {

enum class NodeOrder {
  kDrain,
  kEndDrain,
  kMaintenance,  ///< for so many seconds
  kEndMaintenance,
  kEvict,  ///< its session ends, and no other one begins
  kEndEviction,
};

/// Errors: also kNoSpace (kDrain: the nodes that are left cannot hold as many copies as the volume
/// has).
Status give_order(Disk& disk, Clock& clock, const ClusterConfig& config, const std::string& node,
                  NodeOrder order, std::int64_t seconds = 0);

}  // namespace kvsyncfs
