// Up to where the nodes of a volume have its log in their catalogs on disk, told in etcd: what all
// of them have may go from the log.
//
//   /kvsyncfs/<volume>/durable/<node>     decimal position; stays when its node is away
//
// A position is put on condition that the session of its node has not ended, so a life that is over
// puts none. One that is older than the truth keeps more of the log and is safe. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/cluster/membership.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs {

/// By the node's name.
using PositionMap = std::map<std::string, Position>;

/// What all nodes have on disk; `node` is one that has no more. A node of which nothing is told has
/// nothing, and keeps the whole log; once that is `trimmed` (0: it is not) it came too late for it,
/// and keeps nothing. Without a node that counts: nothing, and no name.
struct LeastDurable {
  Position position;
  std::string node;
};
LeastDurable least_durable(const std::vector<NamedNode>& nodes, const PositionMap& durable,
                           Position trimmed);

/// The live member with the smallest id is the one that trims the log. False while nobody is known.
bool trims_log(const ClusterMap& members, NodeId node);

class DurablePositions {
 public:
  /// The client outlives it. Requires a volume's name (log_keys.h).
  DurablePositions(etcd::EtcdClient& client, const std::string& volume);

  /// Errors: kFenced (the session has ended), those of EtcdClient.
  Status announce(const std::string& node, Incarnation incarnation, Position position,
                  std::uint64_t deadline_ns);

  /// Errors: kCorrupt (no number), kTooBig, those of EtcdClient.
  Result<PositionMap> read(std::uint64_t deadline_ns);

  /// Up to where the log is trimmed. Errors: kCorrupt (no such record), those of EtcdClient.
  Result<Position> trimmed(std::uint64_t deadline_ns);

 private:
  etcd::EtcdClient& client_;
  const std::string volume_, prefix_;
};

}  // namespace kvsyncfs
