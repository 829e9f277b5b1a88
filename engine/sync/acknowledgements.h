// Acknowledgements: what lets a change return to its caller (P2), and what tells others that they
// may. They are cumulative by position, and go to the nodes whose changes were applied, one at a
// time to each. Thread: any. Locks: one mutex each; nothing but carry()'s is called under it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "engine/env/deadline.h"
#include "engine/format/peer_message.h"
#include "engine/format/records.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

/// What other nodes have acknowledged to this one.
class Acknowledgements {
 public:
  using Sessions = std::map<NodeId, SessionRecord>;

  void note(NodeId node, Incarnation incarnation, Position position);
  /// Sessions changed: whoever waits looks again.
  void sessions_changed();
  /// Until every session that lived at `position`, but `own`, has acknowledged it or has ended.
  /// `sessions` gives the present ones; it is called under no lock of others. Errors: kTimeout,
  /// naming the node; also at once when the session of `own` has ended, and with it what it
  /// promised to its callers.
  Status wait(Position position, NodeId own, const std::function<Sessions()>& sessions,
              const Deadline& until);
  /// Nodes that somebody waits for right now.
  std::map<NodeId, Incarnation> awaited() const;
  std::size_t waiting() const;  ///< calls of wait() that wait right now

 private:
  struct Seen {
    Incarnation incarnation;
    Position position;
  };
  struct Missing {
    NodeId node;
    Incarnation incarnation;
  };
  /// The first session whose word is missing; node 0: none. mutex_ is held.
  Missing missing(Position position, NodeId own, const Sessions& sessions) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t generation_ = 0;  // of the sessions
  std::map<NodeId, Seen> seen_;
  std::map<NodeId, std::pair<Incarnation, std::size_t>> awaited_;  // how many wait for it
};

/// Tells other nodes how far this one has applied. Outlived by nothing that it started: every call
/// under way keeps its inside.
class Acknowledger {
 public:
  Acknowledger(Transport& transport, Clock& clock, Incarnation incarnation);
  ~Acknowledger();

  /// What goes along with each acknowledgement, and who is told when a peer says that this node's
  /// catalog is wrong (kFenced). Before the first is sent. Both are called from any thread, under
  /// a lock, and not after the end of this object.
  void carry(std::function<Acknowledge(Position)> compose, std::function<void()> is_wrong);
  /// From now on it speaks for the next session of this node.
  void begin(Incarnation incarnation);
  /// Changes of that session of `node` up to `position` are applied here. What was told to earlier
  /// sessions of the node was not told to this one.
  void owe(NodeId node, Incarnation session, Position position);
  /// Who has been owed one for so long, and got none meanwhile.
  std::set<NodeId> overdue(std::uint64_t age_ns) const;
  /// Sends what is owed and not on its way. Call after a batch was applied, and from time to time:
  /// what a peer did not get is sent again.
  void send();

 private:
  struct State;
  static void send_to(const std::shared_ptr<State>& state, NodeId node);
  std::shared_ptr<State> state_;
};

}  // namespace kvsyncfs
