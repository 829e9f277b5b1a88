// Up to where the nodes of a volume have its log in their catalogs on disk, told in etcd: what
// enough of them have may go from the log.
//
//   /kvsyncfs/<volume>/durable/<node>     decimal position; stays when its node is away
//   /kvsyncfs/<volume>/keep/<node>        decimal position, leased: what a node needs that is on
//   its
//                                         way to be a member: it follows the log from there
//   /kvsyncfs/<volume>/keep_count         empty; its version counts the markers that were put
//
// A position is put on condition that the session of its node has not ended, so a life that is over
// puts none. One that is older than the truth keeps more of the log and is safe. Whoever trims does
// so on condition that no marker came since it looked. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/cluster/membership.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs {

/// By the node's name.
using PositionMap = std::map<std::string, Position>;

/// Who needs what of the log, at one moment.
struct LogNeeds {
  Position trimmed;             ///< up to there it is gone
  std::set<std::string> nodes;  ///< of the volume
  std::set<std::string> up;     ///< those that are members now
  PositionMap durable, kept;
  std::int64_t keep_version = 0;  ///< of keep_count
};

/// Up to where the log may go, and the node that stands there: what is beyond it is needed by a
/// node that is up or on its way, or is in fewer than `copies` catalogs on disk (in all, where
/// there are fewer nodes). A node that is up and told nothing has nothing. No name: nothing may go.
struct LogLimit {
  Position position;
  std::string node;
};
LogLimit log_limit(const LogNeeds& needs, std::size_t copies);

/// The live member with the smallest id is the one that trims the log. False while nobody is known.
bool trims_log(const ClusterMap& members, NodeId node);

class DurablePositions {
 public:
  /// The client outlives it. Requires a volume's name (log_keys.h). `generation`: of its log.
  DurablePositions(etcd::EtcdClient& client, const std::string& volume, std::uint64_t generation);

  /// Errors: kFenced (the session has ended), those of EtcdClient.
  Status announce(const std::string& node, Incarnation incarnation, Position position,
                  std::uint64_t deadline_ns);

  /// From its return until let_go(), or the end of the lease, the log keeps all beyond the
  /// position. Errors: those of EtcdClient.
  Status keep(const std::string& node, std::int64_t lease, Position position,
              std::uint64_t deadline_ns);
  Status let_go(const std::string& node, std::uint64_t deadline_ns);

  /// Errors: kCorrupt (no number, no trim record), kTooBig, those of EtcdClient.
  Result<LogNeeds> needs(std::uint64_t deadline_ns);
  /// What a trimming after needs() holds on to.
  etcd::Compare no_marker_since(const LogNeeds& needs) const;

  /// Up to where the log is trimmed. Errors: kCorrupt (no such record), those of EtcdClient.
  Result<Position> trimmed(std::uint64_t deadline_ns);

 private:
  std::string key(const char* name) const { return root_ + name; }

  etcd::EtcdClient& client_;
  const std::string volume_, root_;
  const std::uint64_t generation_;
};

}  // namespace kvsyncfs
