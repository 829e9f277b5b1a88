// Which node gives way when two of them reach etcd, but not each other: neither can acknowledge the
// other's changes, and neither lease ends by itself. ARCHITECTURE.md, "Who cannot be heard gives
// way".
//
// Each member tells in its line whom it cannot ask, and, while such a list names a member or
// itself, writes the line again and again with another beat: so each sees who lives. A pair of
// members that both beat, one of which cannot ask the other, is a *cut*. When one has lasted for a
// while, who has the most cuts gives way, of several the one with the greatest id, then the next,
// until no cut is left. All nodes reckon alike from the same lines, so of a pair one gives way, and
// a node that is cut from all others gives way to them. Who is dead, frozen or without etcd does
// not beat: its lease ends by itself, and nobody gives way to it. Pure: time comes from outside.
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "engine/cluster/membership.h"

namespace kvsyncfs {

using Cut = std::pair<NodeId, NodeId>;  ///< the smaller id first

/// Who gives way to end these cuts.
std::set<NodeId> who_gives_way(std::set<Cut> cuts);

class CutJudge {
 public:
  /// A cut lasts for `patience_ns` before somebody gives way.
  CutJudge(NodeId self, std::uint64_t patience_ns) : self_(self), patience_ns_(patience_ns) {}

  /// The map was read at `now_ns` (boot time). True: this node has to give way.
  bool look(const ClusterMap& map, std::uint64_t now_ns);
  /// Some member's list names a member that is this node, or this node's names one: its line must
  /// beat. `self`: as it is announced next.
  static bool concerns(const ClusterMap& map, const Member& self);

 private:
  struct Heard {
    Incarnation incarnation;
    std::uint64_t beat = 0;
    std::uint64_t at_ns = 0;  ///< when another beat was seen; 0: never
  };
  void hear(const ClusterMap& map, std::uint64_t now_ns);
  bool lives(NodeId node, std::uint64_t now_ns) const;

  const NodeId self_;
  const std::uint64_t patience_ns_;
  std::uint64_t looked_ns_ = 0;
  std::map<NodeId, Heard> heard_;
  std::map<Cut, std::uint64_t> since_ns_;
};

}  // namespace kvsyncfs
