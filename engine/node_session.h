// This node's session in the log of a cluster: its changes with their request numbers, the
// acknowledgements that they wait for (P2), its lease, and the end of sessions of others.
//
// A change returns when it is applied here and every session that lived at its position has
// acknowledged it or has ended. Thread: any, save where said. Locks: order_mutex_ over the
// numbering and queueing of one request; slots_mutex_ is a leaf.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/catalog/catalog.h"
#include "engine/cluster_seams.h"
#include "engine/env/deadline.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/sync/acknowledgements.h"

namespace kvsyncfs {

class NodeSession {
 public:
  NodeSession(const ClusterSeams& seams, EtcdLog& log, Catalog& catalog, Clock& clock,
              std::uint64_t timeout_ns);

  /// Ends what is left of the node's former life and joins. Once, after the log was started; the
  /// log is being followed. Errors: those of the log.
  Status join();

  /// Errors: those of EtcdLog::append; kTimeout also where an acknowledgement is missing (the
  /// change has happened then).
  /// `numbered` is told the request's number before it is queued, perhaps several times; it calls
  /// nothing of the log.
  using Numbered = std::function<void(std::uint64_t request)>;
  Result<std::vector<CommandResult>> commit(Transaction transaction, const Numbered& numbered = {});

  /// The log's applier tells of each entry, in order. Thread: one at a time.
  void applied(Position position, const Transaction& transaction,
               Result<std::vector<CommandResult>> results);
  /// Acknowledges what was applied. After each batch, and from time to time.
  void acknowledge() { acknowledger_.send(); }
  /// `is_wrong` as Acknowledger::carry has it. Before join().
  void tell_history(std::function<void()> is_wrong) {
    const auto compose = [this](Position position) {
      const HistoryDigest history = catalog_.history();
      return Acknowledge{position, history.position, history.digest};
    };
    acknowledger_.carry(compose, std::move(is_wrong));
  }
  /// Nodes that could not be told for so long what they wait for.
  std::set<NodeId> unheard(std::uint64_t age_ns) const { return acknowledger_.overdue(age_ns); }
  /// A peer acknowledged.
  void note(NodeId peer, Incarnation incarnation, Position position) {
    acknowledgements_.note(peer, incarnation, position);
  }

  /// Changes of this node that wait for others, now.
  std::uint64_t unacknowledged() const { return acknowledgements_.waiting(); }

  /// The catalog here is as good as anybody's. Waits for the lease to be renewed. Errors: kTimeout,
  /// kFenced.
  Status may_answer();

  /// The session has ended for good: nobody waits for its lease any more.
  void ended() { ended_ = true; }

  /// Ends sessions whose lease is gone, of those that are awaited or that `is_down` names. Thread:
  /// one at a time.
  void end_the_dead(const std::function<bool(NodeId)>& is_down,
                    const std::function<Result<std::string>(NodeId)>& name_of);

  /// Ends the session in order. Errors: those of the log.
  Status leave();

 private:
  struct Slot {
    std::optional<Result<std::vector<CommandResult>>> results;
  };
  using SlotPtr = std::shared_ptr<Slot>;

  Result<EtcdLog::Ticket> submit(Transaction& transaction, const SlotPtr& slot,
                                 const Numbered& numbered, const Deadline& until);
  static std::string end_entry(NodeId node, Incarnation incarnation);

  EtcdLog& log_;
  Catalog& catalog_;
  Clock& clock_;
  const NodeId node_;
  const std::string name_;
  const Incarnation incarnation_;
  const std::uint64_t timeout_ns_;
  const std::uint32_t lease_ms_;

  std::atomic<bool> ended_ = false;
  std::mutex order_mutex_;
  std::uint64_t request_ = 0;
  std::mutex slots_mutex_;
  std::unordered_map<std::uint64_t, SlotPtr> slots_;  // by request, of those that wait

  Acknowledgements acknowledgements_;
  Acknowledger acknowledger_;
  std::map<NodeId, std::uint64_t> asked_ns_;  // end_the_dead: when the log was asked last
};

}  // namespace kvsyncfs
