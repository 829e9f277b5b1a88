// EtcdLog: the shared log of a cluster, kept by etcd.
//
// An append is one etcd transaction, a *batch* of everything that queued while the last was under
// way. It holds only if this incarnation's session key is there with the number of its previous
// batch, and puts the batch, the fixed key `count` and the next number. So an incarnation whose
// lease is gone writes nothing, a batch that is sent again is there at most once, and reading the
// session key tells what became of one that got no answer. The version of `count` is the batch's
// *index*, dense in the whole cluster. Positions follow from the order of batches and of the
// entries in them; every node counts alike. Keys: log_keys.h; bytes: format/etcd_batch.h.
//
// Every node watches the log and applies index + 1 and nothing else. What a watch does not give
// (compaction, a slow or silent watch) is read from the batches themselves. A log that is behind
// what was applied here, or that holds another batch in its place (etcd restored from a backup), is
// refused: kCorrupt, for good. So is all after the session's end: kFenced, until rejoin().
//
// It starts no thread. One thread of the caller's calls run_watch() again and again, one
// run_keep_alive() when it is due; appends are driven by the threads that wait for them.
// Invariants: those of SharedLog, and: what append() or take() confirmed is in etcd's quorum, so
// durable() is last(). Nothing of a session is in the log behind an entry that append_end() put
// there for it. Locks: keeper_mutex_ before watch_mutex_ before apply_mutex_ before queue_mutex_;
// the applier runs under apply_mutex_; no lock but the first two is held over a call of etcd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/env/clock.h"
#include "engine/log/etcd/etcd_client.h"
#include "engine/log/etcd/log_keys.h"
#include "engine/log/shared_log.h"

namespace kvsyncfs {

/// A batch that was applied, as it must still be in the log unless it was trimmed.
struct AppliedBatch {
  std::uint64_t index = 0;  ///< 0: none
  std::int64_t revision = 0;
  std::string key;
};

struct EtcdLogOptions {
  std::string volume, node;       ///< 1 to 64 of A-Z a-z 0-9 . _ -
  std::uint64_t incarnation = 0;  ///< greater than those of the node's earlier lives, see
                                  ///< next_incarnation
  std::uint64_t generation = 1;   ///< of the log that the node's catalog follows
  AppliedBatch known;             ///< last_batch() of some time, kept with the catalog
  std::string barred_by;          ///< a key of etcd: while it is there no life begins; empty: none
  std::string sent_away_by;       ///< the same of a node that may be called back; empty: none
  std::int64_t lease_ttl_s = 5;   ///< of the session
  std::uint64_t request_timeout_ns = 2'000'000'000;  ///< one request to etcd
  std::uint64_t timeout_ns = 15'000'000'000;         ///< one call of this class, all told
  std::uint64_t silence_ns = 1'000'000'000;          ///< a watch that says nothing is checked
  std::uint64_t batch_size_max = 1u << 20;           ///< bytes; etcd refuses more than 1.5 MiB
  std::uint64_t queue_bytes_max = 16u << 20;         ///< waiting entries; more wait outside
  std::uint64_t window = etcd::kWindow;              ///< see log_keys.h; the same on all nodes
  std::uint64_t capacity_bytes = 1u << 30;           ///< half of etcd's quota of 2 GiB
};

struct EtcdLogCounters {                     ///< only grow
  std::uint64_t batches = 0, entries = 0;    ///< appended here
  std::uint64_t repeats = 0;                 ///< batches sent again
  std::uint64_t watches = 0, resyncs = 0;    ///< opened; read from the batches instead
  std::uint64_t renewals = 0, withheld = 0;  ///< of the lease; not asked for since apply was behind
};

/// Makes the volume's log in etcd: its first one, or, with the generation after the present one,
/// the next; its first entry will be `base` + 1. Errors: kExists (there is one of this or a later
/// generation), kInvalid (a name), those of EtcdClient.
Status format_etcd_log(etcd::EtcdClient& client, Clock& clock, const std::string& volume,
                       std::uint64_t generation, Position base);

/// What the next life of `node` may call itself in the log of that generation: greater than the
/// incarnation of every life that opened this log or an earlier one, as long as all of them asked
/// here. It takes nothing: of two that are told the same, open() lets one in. Errors: kInvalid (a
/// name), those of EtcdClient.
Result<std::uint64_t> next_incarnation(etcd::EtcdClient& client, Clock& clock,
                                       const std::string& volume, const std::string& node,
                                       std::uint64_t generation);

class EtcdLog : public SharedLog {
 public:
  /// Takes a lease and puts the session's key; every older session of the node ends with that, so
  /// nothing of a former life can be appended any more. Client and clock outlive the log.
  /// Errors: kInvalid (a name or size), kNotFormatted (no such volume), kStale (another
  /// generation, or the node is barred), kNotPermitted (it was sent away), kBusy (the node begins
  /// another life elsewhere, or one of its lives had this or a greater incarnation), those of
  /// EtcdClient.
  static Result<std::unique_ptr<EtcdLog>> open(etcd::EtcdClient& client, Clock& clock,
                                               EtcdLogOptions options);

  // Beside the errors of SharedLog: kTimeout (the entry may be in the log, now or later), kFenced,
  // kCorrupt, kStale (start: entries after `applied` are trimmed away; fetch a snapshot), kAccess.

  /// append() in parts, for who must not block. submit() queues the entry (kBusy: the queue is
  /// full), run_append() sends, take() gives the result once and nothing before. A ticket that is
  /// dropped stays in the queue. Thread: any.
  struct Pending;
  /// Shared: whoever waits may give up while the batch is under way.
  using Ticket = std::shared_ptr<Pending>;
  virtual Result<Ticket> submit(std::string_view entry) = 0;
  virtual std::optional<Result<Position>> take(const Ticket& ticket) = 0;
  /// Sends a batch, or again one whose outcome is not known, if nobody else is doing so; returns
  /// the boot time before which another call is of no use (~0: until there is a new ticket).
  virtual std::uint64_t run_append() = 0;

  /// Drives the ticket's entry until it is applied here, as append() does; at the deadline (boot
  /// time) it leaves the queue, or stays under way: then take() gives nothing, and wait() may be
  /// called again. Errors: those of append.
  virtual Result<Position> wait(const Ticket& ticket, std::uint64_t deadline_ns) = 0;

  /// Appends `entry` on condition that this session has ended: its lease is gone or its node began
  /// another life. Errors: kBusy (it lives), those of append.
  virtual Result<Position> append_end(std::string_view entry, const std::string& node,
                                      std::uint64_t incarnation) = 0;
  virtual Result<Ticket> submit_end(std::string_view entry, const std::string& node,
                                    std::uint64_t incarnation) = 0;

  /// Applies what the watch has, waits for at most `wait_ns`; opens it or reads the log instead
  /// where need be. Errors: those of EtcdClient (call again after a pause), kFenced, kCorrupt,
  /// kStale (for good).
  virtual Status run_watch(std::uint64_t wait_ns) = 0;

  /// Renews the lease if apply is less than a third of a lease behind, or start() has not come to
  /// its end: nobody waits for who has not joined. Returns the boot time of the next call, ~0 if
  /// the session has ended. Thread: one at a time.
  virtual std::uint64_t run_keep_alive() = 0;

  /// The session lives for sure until then (boot time): counted from the sending of the last
  /// renewal, less a tenth. Thread: any.
  virtual std::uint64_t lease_until_ns() const = 0;
  virtual bool lease_is_valid() const = 0;
  /// etcd's id of the session's lease: keys that have it go with the session. Thread: any.
  virtual std::int64_t lease() const = 0;

  /// Gives the session up: from now on all fails with kFenced, which says why, and the lease proves
  /// nothing. What proved it a moment ago may still be in use, so free_lease() comes a tenth of the
  /// lease later. Thread: any.
  virtual void give_way(const std::string& why) = 0;
  /// Others need not wait for the lease's end. Errors: those of EtcdClient.
  virtual Status free_lease() = 0;
  /// After kFenced: begins another session of the node, as open() does, and applies all that the
  /// log has: of the former session nothing comes behind that. Whatever was under way of it ended
  /// with kFenced. `before_reading` is called with the new lease. Errors: those of open(), start()
  /// and `before_reading`, kTimeout; the log stays fenced, and the next try takes another
  /// incarnation. kCorrupt and kStale are for good: the latter also where another object has begun
  /// a life of the node since.
  virtual Status rejoin(std::uint64_t incarnation,
                        const std::function<Status()>& before_reading) = 0;

  /// Index of the last batch, by a linearizable read. Errors: those of EtcdClient, kCorrupt.
  virtual Result<std::uint64_t> tail() = 0;
  virtual std::uint64_t applied_index() const = 0;
  /// What start() of a later life should find again: the position alone does not tell an etcd that
  /// was put back and went on since.
  virtual AppliedBatch last_batch() const = 0;
  /// All that was in the log when this was called has been applied here. Needs somebody in
  /// run_watch(). Errors: those of tail(), kTimeout.
  virtual Status catch_up() = 0;

  /// trim(), but nothing goes unless the comparison holds when the record of it is written. Errors:
  /// kBusy (it does not), those of trim.
  virtual Status trim_if(const etcd::Compare& condition, Position position) = 0;

  /// Ends the session in order; later appends get kShutdown. Errors: those of EtcdClient (the lease
  /// ends by itself then).
  virtual Status leave() = 0;

  virtual EtcdLogCounters counters() const = 0;

  /// freeze(), with last_batch() as it is meanwhile. Errors: those of freeze.
  virtual Status freeze_at_batch(
      const std::function<void(Position, const AppliedBatch&)>& while_frozen) = 0;
};

}  // namespace kvsyncfs
