// EtcdLog's inside, shared by etcd_log*.cc: opening and the calls of SharedLog (etcd_log.cc),
// appends (etcd_log_append.cc), following (etcd_log_watch.cc), the lease and trimming
// (etcd_log_session.cc). Locks: see etcd_log.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/log/etcd/etcd_log.h"
#include "engine/log/etcd/log_keys.h"
#include "engine/log/etcd/replay.h"

namespace kvsyncfs {

struct EtcdLog::Pending {
  std::string entry;
  std::string end_of_session;              ///< key that must be gone; empty: no condition
  std::optional<Result<Position>> result;  ///< under queue_mutex_
  std::condition_variable changed;         ///< whoever waits for it has something to do

  /// queue_mutex_ is held.
  void end(Result<Position> how) {
    result.emplace(std::move(how));
    changed.notify_all();
  }
};

namespace etcd {

/// A batch of ours on its way. Its content is fixed; its base may change from sending to sending.
struct Flight {
  std::uint64_t number = 0;
  std::uint64_t base = 0;
  std::string value;
  AppliedBatch before;  ///< the last that was applied here when it was sent
  std::vector<EtcdLog::Ticket> tickets;
  std::string end_of_session;
  bool unknown = false;         ///< a sending got no answer and may still be carried out
  std::optional<Error> voided;  ///< it shall not happen: its number is to be used up
  std::uint32_t sendings = 0;
};

class EtcdLogImpl final : public EtcdLog {
 public:
  EtcdLogImpl(EtcdClient& client, Clock& clock, EtcdLogOptions options);

  Status join();  ///< before all else; again by rejoin()

  Status start(Position applied, Applier applier) override;
  Result<Position> append(std::string_view entry) override;
  Status sync(Position position) override;
  Status freeze(const std::function<void(Position)>& while_frozen) override {
    return freeze_at_batch([&](Position last, const AppliedBatch&) { while_frozen(last); });
  }
  Status freeze_at_batch(
      const std::function<void(Position, const AppliedBatch&)>& while_frozen) override;
  Position last() const override { return {position_.load(std::memory_order_acquire)}; }
  Position durable() const override { return last(); }
  Status trim(Position position) override { return trim_on({}, position); }
  Status trim_if(const Compare& condition, Position position) override {
    return trim_on({condition}, position);
  }
  std::uint64_t held_bytes() const override { return held_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t capacity_bytes() const override { return options_.capacity_bytes; }

  Result<Ticket> submit(std::string_view entry) override;
  std::optional<Result<Position>> take(const Ticket& ticket) override;
  Result<Position> wait(const Ticket& ticket, std::uint64_t deadline_ns) override;
  std::uint64_t run_append() override;
  Result<Position> append_end(std::string_view entry, const std::string& node,
                              std::uint64_t incarnation) override;
  Result<Ticket> submit_end(std::string_view entry, const std::string& node,
                            std::uint64_t incarnation) override;
  Status run_watch(std::uint64_t wait_ns) override;
  std::uint64_t run_keep_alive() override;
  std::uint64_t lease_until_ns() const override {
    return lease_until_ns_.load(std::memory_order_acquire);
  }
  bool lease_is_valid() const override { return clock_.boot_ns() < lease_until_ns(); }
  std::int64_t lease() const override { return lease_; }
  void give_way(const std::string& why) override;
  Status free_lease() override;
  Status rejoin(std::uint64_t incarnation, const std::function<Status()>& before_reading) override;
  Result<std::uint64_t> tail() override;
  std::uint64_t applied_index() const override { return index_.load(std::memory_order_acquire); }
  AppliedBatch last_batch() const override {
    std::lock_guard lock(apply_mutex_);
    return applied_;
  }
  Status catch_up() override;
  Status leave() override;
  EtcdLogCounters counters() const override;

 private:
  struct Mark {  ///< some batches that were applied, one after the other
    std::uint64_t first_index = 0, last_index = 0;
    Position position;          ///< of the last entry
    std::int64_t revision = 0;  ///< of the last batch
    std::uint64_t bytes = 0;
  };
  enum class Applied { kDone, kOld, kGap };

  Status read_to_the_end(std::uint64_t until_ns);
  std::uint64_t deadline(std::uint64_t timeout_ns) const { return clock_.boot_ns() + timeout_ns; }
  std::uint64_t request_deadline() const { return deadline(options_.request_timeout_ns); }
  Error fail(Error error);  ///< for good; every ticket gets it
  Status alive() const;
  Status why_not_joined(const TxnReply& reply) const;

  Status become(std::uint64_t incarnation, std::uint64_t until_ns);

  // etcd_log_append.cc
  Result<Ticket> enqueue(std::string_view entry, std::string end_of_session);
  std::uint64_t send(std::uint64_t deadline_ns);
  std::uint64_t next_sending_ns() const;
  void take_queue();  ///< a flight from the queue; queue_mutex_ is held
  Txn compose(const Flight& flight) const;
  void settle(const Txn& txn, const Result<TxnReply>& reply);
  void settle_success(const TxnReply& reply);
  void settle_refusal(const TxnReply& reply);
  void settle_error(const Error& error);
  void drop_flight(const Error& error);
  void void_flight();
  void landed();
  void finish(Flight& flight, const Result<Position>& first);
  void back_off();
  void wake_next();
  /// Somebody is in wait(): each is woken for its own result, and one of them where there is
  /// something to send. So many who wait cost one another no changes of threads.
  class Waiting {
   public:
    Waiting(EtcdLogImpl& log, Pending& pending);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    EtcdLogImpl& log_;
    std::list<Pending*>::iterator place_;
  };

  // etcd_log_watch.cc
  Applied apply(std::uint64_t index, const std::string& key, std::int64_t revision,
                std::string_view value, Status* status);
  void own_batch_applied(std::uint64_t number, Position first);
  Status open_watch();
  Status resync();
  Status begin_reading(const TrimRecord& trim);
  Status take_puts(const WatchBatch& batch);
  Status take_count(const KeyValue& count);
  Status watch_broke(const Error& error);
  void close_watch(bool resync);
  void note_tail(std::uint64_t index);

  // etcd_log_session.cc
  Status trim_on(const std::vector<Compare>& conditions, Position position);
  Status write_trim(const std::vector<Compare>& conditions, const TrimRecord& record,
                    std::uint64_t until_ns);
  Status delete_batches(std::uint64_t index, std::uint64_t until_ns);
  void forget_trimmed(const TrimRecord& trim);

  EtcdClient& client_;
  Clock& clock_;
  const EtcdLogOptions options_;
  const LogKeys keys_;

  /// Held over calls of etcd: the lease is renewed, or another session begins.
  std::mutex keeper_mutex_;

  std::mutex watch_mutex_;  ///< one follower; guards the seven below
  std::unique_ptr<EtcdWatch> watch_;
  bool resync_ = false;
  std::optional<KeyValue> put_;           ///< a batch whose count has not come yet
  std::optional<AppliedBatch> expected_;  ///< what a watch that was opened again must show first
  std::uint64_t heard_ns_ = 0;
  std::int64_t read_up_to_ = 0;  ///< revision of the last reading
  bool just_read_ = false;

  mutable std::mutex apply_mutex_;  ///< after watch_mutex_; order of batches, calls of the applier
  Applier applier_;
  AppliedBatch applied_;
  Position start_after_;  ///< what the catalog had when the log was started
  bool begun_ = false;    ///< the first reading knows where the log begins
  std::atomic<std::uint64_t> index_{0}, position_{0};
  std::deque<Mark> marks_;  ///< oldest first, of what is not trimmed
  TrimRecord trim_;
  std::int64_t compacted_ = 0;  ///< revision
  std::atomic<std::uint64_t> held_bytes_{0};

  mutable std::mutex queue_mutex_;   ///< after apply_mutex_; guards the rest
  std::condition_variable changed_;  ///< for all but those who are in wait()
  std::list<Pending*> waiting_;      ///< in wait(), the oldest first
  std::deque<Ticket> queue_;
  std::uint64_t queue_bytes_ = 0;
  std::optional<Flight> flight_;            ///< sent, outcome not known
  std::map<std::uint64_t, Flight> landed_;  ///< in the log, not applied yet; by number
  bool sending_ = false;
  bool started_ = false;
  std::uint64_t number_ = 0;    ///< of the last flight
  std::uint64_t retry_ns_ = 0;  ///< not before
  std::optional<Error> failure_;
  std::uint64_t tail_ = 0, tail_ns_ = 0;  ///< an index not applied when it was told, since when
  EtcdLogCounters counters_;

  /// The session; change while its lease is gone, nobody sends and the keeper's mutex is held.
  std::uint64_t incarnation_;
  std::string session_key_;
  std::vector<std::string> own_lives_;  ///< keys of sessions that this object began, or tried to
  std::atomic<std::int64_t> lease_{0};
  std::int64_t lease_ttl_s_ = 0;
  std::uint64_t renew_ns_ = 0;  ///< the keeper's
  std::atomic<std::uint64_t> lease_until_ns_{0};
};

}  // namespace etcd
}  // namespace kvsyncfs
