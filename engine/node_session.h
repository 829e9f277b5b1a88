// This node's session in the log of a cluster: its changes with their request numbers, the
// acknowledgements that they wait for (P2), its lease, and the end of sessions of others. A node
// whose session has ended is *out* until it begins another one.
//
// A change returns when it is applied here and every session that lived at its position has
// acknowledged it or has ended. Thread: any, save where said. Locks: order_mutex_ over the
// numbering and queueing of one request; sent_mutex_ is a leaf.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
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

  /// The session has ended: from now on changes and answers fail or wait, until reopen().
  void ended();
  bool is_out() const { return out_ns_ != 0; }
  /// After EtcdLog::rejoin(): as join(), for the next session. Thread: that of reopen(). Errors:
  /// those of join().
  Status rejoin(Incarnation incarnation);
  /// Changes and answers go on.
  void reopen() { out_ns_ = 0; }
  /// Of the present session, or of the last.
  Incarnation incarnation() const { return {incarnation_.load()}; }

  /// A change on its way, and what is known of it. One thread at a time.
  struct Sent;
  using SentPtr = std::shared_ptr<Sent>;  // shared: the log's applier looks it up
  enum class Fate {
    kUnknown,  ///< it may be in the log, or come there
    kLanded,   ///< it was applied here
    kRefused,  ///< it is not in the log, and never will be
  };
  /// Told the request's number before it is queued, perhaps several times; calls nothing of the
  /// log.
  using Numbered = std::function<void(std::uint64_t request)>;
  /// Set by the log's applier when the change was applied, before what follows it is.
  using LandedFlag = std::shared_ptr<std::atomic<bool>>;
  struct SendOptions {
    std::optional<Incarnation> wanted;  ///< only in this session; none: in the present one
    Numbered numbered;
    LandedFlag has_landed;
  };

  /// Gives the transaction its number and queues it: what is sent later comes later in the log.
  /// Errors, with none of which anything was sent: those of EtcdLog::submit but kFenced; kTimeout
  /// also while the node is out, and where another session than the wanted one is lived by now.
  Result<SentPtr> send(Transaction& transaction, const Deadline& until, const SendOptions& options);
  /// Waits until the change was applied and acknowledged. Where it is of a former session, an empty
  /// one of the present session is acknowledged in its place. After an error it may be called
  /// again, as long as fate() is not kRefused. Errors: those of EtcdLog::wait but kFenced; kTimeout
  /// also where an acknowledgement is missing, and where the session ended meanwhile.
  Result<std::vector<CommandResult>> finish(Sent& sent, const Deadline& until);
  /// In a session after its own it is not kUnknown.
  Fate fate(const Sent& sent) const;

  /// Both in one. Errors: those of both; what became of the change is not said.
  Result<std::vector<CommandResult>> commit(Transaction transaction,
                                            const SendOptions& options = {});

  /// What an acknowledgement has to wait for: calls `then` when it is due, in the order of the
  /// calls. Before join().
  void acknowledge_after(std::function<void(std::function<void()> then)> due) {
    due_ = std::move(due);
  }
  /// The log's applier tells of each entry, in order. Thread: one at a time.
  void applied(Position position, const Transaction& transaction,
               Result<std::vector<CommandResult>> results);
  /// Acknowledges what was applied. After each batch, and from time to time.
  void acknowledge() { acknowledger_.send(); }
  /// `is_wrong` as Acknowledger::carry has it. Before join().
  void tell_history(std::function<void()> is_wrong) {
    const auto compose = [this](Position position) {
      const HistoryDigest history = catalog_.history();
      return Acknowledge{position, history.position, history.digest, {}, {}};
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

  /// The catalog here is as good as anybody's.
  bool is_proved() const { return !is_out() && log_.lease_is_valid(); }
  /// Waits for that: for the lease to be renewed, or for the next session. Errors: kTimeout.
  Status may_answer();

  /// Ends sessions whose lease is gone, of those that are awaited or that `is_down` names. Thread:
  /// one at a time.
  void end_the_dead(const std::function<bool(NodeId)>& is_down,
                    const std::function<Result<std::string>(NodeId)>& name_of);

  /// Ends the session in order. Errors: those of the log.
  Status leave();

 private:
  using SentId = std::pair<Incarnation, std::uint64_t>;  // and the request's number

  Result<std::vector<CommandResult>> commit_until(Transaction transaction, const Deadline& until,
                                                  const SendOptions& options);
  bool has_landed(const Sent& sent) const;
  void note_dropped(Sent& sent);
  void note_landed(const SentId& id, Position position, Result<std::vector<CommandResult>> results);
  static std::string end_entry(NodeId node, Incarnation incarnation);

  EtcdLog& log_;
  Catalog& catalog_;
  Clock& clock_;
  const NodeId node_;
  const std::string name_;
  std::atomic<std::uint64_t> incarnation_;
  const std::uint64_t timeout_ns_;
  const std::uint32_t lease_ms_;

  std::atomic<std::uint64_t> out_ns_ = 0;  // since when it is out; 0: it is not
  std::mutex order_mutex_;
  std::uint64_t request_ = 0;
  mutable std::mutex sent_mutex_;               // also over what the applier says of each
  std::map<SentId, std::weak_ptr<Sent>> sent_;  // not known to be applied or dropped

  Acknowledgements acknowledgements_;
  Acknowledger acknowledger_;
  std::function<void(std::function<void()>)> due_ = [](const auto& then) { then(); };
  std::map<NodeId, std::uint64_t> asked_ns_;  // end_the_dead: when the log was asked last
};

}  // namespace kvsyncfs
