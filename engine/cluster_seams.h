// What an engine stands on in a cluster, beside disk, clock and random: the log's keeper, the other
// nodes, and somebody who runs its loops. Thread: values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/log/etcd/etcd_client.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

/// Runs steps again and again, each kind in a thread of its own (the simulator: in turn).
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  /// Calls `step` now and then whenever the boot time that it returned has come; ~0: never again.
  virtual void start(std::string_view name, std::function<std::uint64_t()> step) = 0;
  /// Waits for the steps that run; none runs after its return. Not from a step.
  virtual void stop() = 0;
};

/// All outlive the engine.
struct ClusterSeams {
  etcd::EtcdClient& etcd;
  Transport& transport;
  TaskRunner& tasks;
  std::string volume = {}, node_name = {}, rack = {};
  NodeId node = {};
  Incarnation incarnation = {};             ///< as next_incarnation() gave it
  std::vector<std::string> addresses = {};  ///< where the transport listens, for the other nodes
  std::size_t replicas = 2;                 ///< holders of a segment, this node among them
  std::int64_t lease_ttl_s = 5;
  std::uint64_t log_size_bytes = 1u
                                 << 30;    ///< what the log may hold; half of etcd's quota of 2 GiB
  std::string version = {};                ///< of the program, for people
  std::vector<std::string> features = {};  ///< as Member has them
  std::uint64_t generation = 1;            ///< of the volume's log, as node_generation.h tells
  bool has_catalog = true;  ///< that follows this log; else one is to be taken from another node
};

}  // namespace kvsyncfs
