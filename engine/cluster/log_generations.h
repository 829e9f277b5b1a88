// The log of a volume in etcd as a whole: which generation it is, how the next one begins, and
// nodes that etcd knows no more. ARCHITECTURE.md, "A log begins anew with one node's catalog".
//
// A generation begins in one transaction, with the records of the volume and of the node that
// begins it, and only while no session lives and no life begins. From then on every transaction of
// an earlier generation fails. Thread: any; nothing is held between calls.
//
// Errors of every call, beside those it tells: kCorrupt and kNewerFormat (a record), those of
// EtcdClient. kTimeout of a change: it may have been carried out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/cluster/durable_positions.h"
#include "engine/env/clock.h"
#include "engine/format/cluster_config.h"
#include "engine/format/log_generation.h"
#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs {

struct LogInEtcd {
  std::uint64_t generation = 0;    ///< 0: etcd has no log of the volume
  Position base;                   ///< before the first entry that is not trimmed
  std::optional<Position> origin;  ///< of the catalog with which it began; none: the first log
  PositionMap durable;             ///< as nodes told, by name
};

/// What begins with a generation.
struct NewLog {
  std::uint64_t former = 0;  ///< as LogInEtcd had it
  std::uint64_t generation = 0;
  Position base;
  Position origin;  ///< of the catalog with which it begins, in the former log
  VolumeRecord volume;
  std::string node;             ///< that begins it
  NodeRecord record;            ///< of it
  std::uint64_t ids_given = 0;  ///< of nodes, as far as is known; they are not given again
};

class LogGenerations {
 public:
  /// Client and clock outlive it. Requires is_cluster_name(volume).
  LogGenerations(etcd::EtcdClient& client, Clock& clock, std::string volume);

  /// Errors: kTooBig (more than VolumeRecordStore::kNodesMax nodes).
  Result<LogInEtcd> read(std::uint64_t deadline_ns);

  /// No session of the volume lives. Errors: kBusy, naming a node.
  Status check_unmounted(std::uint64_t deadline_ns);

  /// The volume's log is of that generation when it returns; records of volume and node that are
  /// there stay as they are. Once it succeeded it does so again. Errors: kBusy (a session lives,
  /// or somebody else changed the volume), kExists (another volume has the name), kStale (the node
  /// is another store, or was removed), kTooBig (more than 100 nodes).
  Status begin(const NewLog& log, std::uint64_t deadline_ns);

  /// Removes what is left of an earlier generation, in steps. Errors: none of its own.
  Status remove_log(std::uint64_t generation, std::uint64_t deadline_ns);

  /// Puts the record of a node that etcd does not know, under the id that the node has, into the
  /// log of that generation. Nothing happens where it is there. Errors: kNotFound (no such volume
  /// or generation any more), kStale (the node was removed), kExists (its name or id is another
  /// node's).
  Status enlist(const ClusterConfig& config, std::uint64_t generation, std::uint64_t deadline_ns);

 private:
  std::string key(std::string_view name) const { return root_ + std::string(name); }
  Status raise_node_count(std::uint64_t ids, std::uint64_t deadline_ns);
  Result<bool> try_to_begin(const NewLog& log, std::uint64_t deadline_ns);
  Result<bool> try_to_enlist(const ClusterConfig& config, std::uint64_t generation,
                             std::uint64_t deadline_ns);

  etcd::EtcdClient& client_;
  Clock& clock_;
  const std::string volume_, root_;
};

}  // namespace kvsyncfs
