// Which nodes of a volume are up: each keeps a line in etcd under the lease of its session, and
// every node reads them all.
//
//   /kvsyncfs/<volume>/members/<name>     the line of a member, see member.h; leased
//
// A line is there only with its session: it is written on condition that the session has not ended
// and goes with the session's lease. So a life that is over puts no line over that of the next one.
// A node that went without leaving is in the list until its lease ends; that it is silent is told
// sooner by Transport's PeerEvent.
//
// Invariants: 1. a map never changes, the next one takes its place; 2. epochs of one Membership
// grow; they are this node's own and mean nothing on another one; 3. a map never takes the place of
// one that was read later. Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/cluster/member.h"
#include "engine/env/clock.h"
#include "engine/log/etcd/etcd_client.h"
#include "engine/policy/placement.h"

namespace kvsyncfs {

inline constexpr std::int64_t kMembersMax = 1024;

struct ClusterMap {
  std::uint64_t epoch = 0;              ///< 0: nothing was read yet
  std::vector<Member> members;          ///< by id; no id and no name twice
  std::vector<std::string> unreadable;  ///< names of lines that say nothing to this version
  std::vector<std::string> newer;       ///< of them: lines that a later version may read

  /// Null: no such member.
  const Member* find(NodeId node) const;
};

/// The members as placement sees them. The racks are the map's own texts: it must stay.
std::vector<Candidate> placement_candidates(const ClusterMap& map);

class Membership {
 public:
  /// Client and clock outlive it. Requires a volume's name (log_keys.h).
  Membership(etcd::EtcdClient& client, Clock& clock, const std::string& volume);

  /// Writes the line of this node, over an earlier one; nothing if map() shows it as it is: etcd
  /// keeps each change until it is compacted. `lease`: EtcdLog::lease() of the log that was opened
  /// with the member's name and incarnation. A call that timed out may still write its line, later
  /// than the next call; so go on with announce() and refresh() now and then.
  /// Errors: kInvalid (see encode_member), kFenced (the session has ended), those of EtcdClient.
  Status announce(const Member& member, std::int64_t lease, std::uint64_t deadline_ns);

  /// Reads the lines. Afterwards map() shows all that was announced before the call. A line that
  /// cannot be read hides its node and no other one.
  /// Errors: kTooBig (more than kMembersMax), those of EtcdClient; the map stays as it was.
  Status refresh(std::uint64_t deadline_ns);

  /// What was read last. Shared: a reader keeps its map while others come. Never null.
  std::shared_ptr<const ClusterMap> map() const;

  /// Boot time when the latest refresh that succeeded began; 0: none did.
  std::uint64_t read_ns() const;

 private:
  etcd::EtcdClient& client_;
  Clock& clock_;
  const std::string volume_, prefix_;

  mutable std::mutex mutex_;  ///< guards the rest; never held over a call of etcd
  std::shared_ptr<const ClusterMap> map_ = std::make_shared<ClusterMap>();
  std::int64_t revision_ = 0;  ///< of etcd, of the map
  std::uint64_t read_ns_ = 0;
};

}  // namespace kvsyncfs
