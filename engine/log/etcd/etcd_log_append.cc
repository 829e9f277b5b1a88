// Appends: the queue, the one flight, and what its answers mean.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/format/etcd_batch.h"
#include "engine/log/etcd/etcd_log_impl.h"

namespace kvsyncfs::etcd {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::size_t kLandedMax = 16;  // batches of ours that wait for those of others
constexpr std::uint64_t kBackOffMinNs = 20'000'000, kBackOffMaxNs = 500'000'000;

// Places of the answers in the branch of a refusal, see compose().
enum RefusalRange : std::size_t { kSessionRange, kGenerationRange, kCountRange, kEndRange };

/// The number in a session's key; nothing if there is none.
std::optional<std::uint64_t> session_number(const RangeReply& reply) {
  return reply.items.size() == 1 ? parse_number(reply.items[0].value) : std::nullopt;
}

}  // namespace

Result<Position> EtcdLogImpl::append(std::string_view entry) {
  const std::uint64_t until_ns = deadline(options_.timeout_ns);
  for (;;) {
    auto ticket = enqueue(entry, {});
    if (ticket) return wait(*ticket, until_ns);
    if (ticket.error().code != Code::kBusy) return ticket.error();
    std::unique_lock lock(queue_mutex_);  // the queue is full: each step of it wakes us
    const std::uint64_t now_ns = clock_.boot_ns();
    if (now_ns >= until_ns) return Error(Code::kTimeout, "the log's queue is full");
    changed_.wait_for(lock, std::chrono::nanoseconds(std::min(until_ns - now_ns, kBackOffMaxNs)));
  }
}

Result<Position> EtcdLogImpl::append_end(std::string_view entry, const std::string& node,
                                         std::uint64_t incarnation) {
  const std::uint64_t until_ns = deadline(options_.timeout_ns);
  KVSYNCFS_ASSIGN(const Ticket ticket, submit_end(entry, node, incarnation));
  return wait(ticket, until_ns);
}

Result<EtcdLog::Ticket> EtcdLogImpl::submit(std::string_view entry) { return enqueue(entry, {}); }

Result<EtcdLog::Ticket> EtcdLogImpl::submit_end(std::string_view entry, const std::string& node,
                                                std::uint64_t incarnation) {
  if (!is_name(node)) return Error(Code::kInvalid, "node " + node);
  return enqueue(entry, keys_.session(node, incarnation));
}

Result<EtcdLog::Ticket> EtcdLogImpl::enqueue(std::string_view entry, std::string end_of_session) {
  if (kEtcdBatchOverhead + kEtcdEntryOverhead + entry.size() > options_.batch_size_max)
    return Error(Code::kTooBig, fmt::format("log entry of {} bytes", entry.size()));
  if (held_bytes() + entry.size() > options_.capacity_bytes)
    return Error(Code::kNoSpace, fmt::format("log of volume {} in etcd", options_.volume));
  std::lock_guard lock(queue_mutex_);
  if (failure_) return *failure_;
  if (!started_) return Error(Code::kInvalid, "the log was not started");
  if (!queue_.empty() && queue_bytes_ + entry.size() > options_.queue_bytes_max)
    return Error(Code::kBusy, "the log's queue is full");
  queue_bytes_ += entry.size();
  auto pending = std::make_shared<Pending>();
  pending->entry = entry;
  pending->end_of_session = std::move(end_of_session);
  return queue_.emplace_back(std::move(pending));
}

std::optional<Result<Position>> EtcdLogImpl::take(const Ticket& ticket) {
  std::lock_guard lock(queue_mutex_);
  return std::exchange(ticket->result, std::nullopt);
}

/// Whoever waits drives the log while nobody else does.
Result<Position> EtcdLogImpl::wait(const Ticket& ticket, std::uint64_t deadline_ns) {
  const Waiting waiting(*this, *ticket);
  for (;;) {
    {
      std::lock_guard lock(queue_mutex_);
      if (ticket->result) return *ticket->result;
      if (clock_.boot_ns() >= deadline_ns) {
        const auto queued = std::find(queue_.begin(), queue_.end(), ticket);
        if (queued != queue_.end()) {
          queue_bytes_ -= ticket->entry.size();
          queue_.erase(queued);
          ticket->result.emplace(Error(Code::kTimeout, "append to the log"));
        }
        return Error(Code::kTimeout, "append to the log");
      }
    }
    send(deadline_ns);
    std::unique_lock lock(queue_mutex_);
    const std::uint64_t now_ns = clock_.boot_ns();
    const std::uint64_t until_ns = std::min(next_sending_ns(), deadline_ns);
    if (!ticket->result && until_ns > now_ns)
      ticket->changed.wait_for(lock, std::chrono::nanoseconds(until_ns - now_ns));
  }
}

EtcdLogImpl::Waiting::Waiting(EtcdLogImpl& log, Pending& pending) : log_(log) {
  std::lock_guard lock(log_.queue_mutex_);
  place_ = log_.waiting_.insert(log_.waiting_.end(), &pending);
}

EtcdLogImpl::Waiting::~Waiting() {
  std::lock_guard lock(log_.queue_mutex_);
  log_.waiting_.erase(place_);
  log_.wake_next();
}

/// queue_mutex_ is held. One of those who wait has to send: it looks at what is to be done, and on
/// its way out it wakes the next one.
void EtcdLogImpl::wake_next() {
  changed_.notify_all();
  if (next_sending_ns() != kNever && !waiting_.empty()) waiting_.front()->changed.notify_all();
}

/// queue_mutex_ is held.
std::uint64_t EtcdLogImpl::next_sending_ns() const {
  if (failure_ || sending_) return kNever;
  if (flight_) return retry_ns_;
  return queue_.empty() || landed_.size() >= kLandedMax ? kNever : 0;
}

std::uint64_t EtcdLogImpl::run_append() { return send(kNever); }

/// run_append(), by somebody who waits no longer than that.
std::uint64_t EtcdLogImpl::send(std::uint64_t deadline_ns) {
  const AppliedBatch before = last_batch();
  Txn txn;
  {
    std::lock_guard lock(queue_mutex_);
    if (const std::uint64_t due_ns = next_sending_ns(); clock_.boot_ns() < due_ns) return due_ns;
    if (!flight_) take_queue();
    sending_ = true;
    if (flight_->sendings++ > 0) ++counters_.repeats;
    flight_->base = std::max({flight_->base, applied_index(), tail_});
    flight_->before = before;
    txn = compose(*flight_);
  }
  settle(txn, client_.txn(txn, std::min(request_deadline(), deadline_ns)));
  std::lock_guard lock(queue_mutex_);
  sending_ = false;
  wake_next();
  return next_sending_ns();
}

/// An entry on a condition of its own goes alone.
void EtcdLogImpl::take_queue() {
  Flight flight;
  std::vector<std::string_view> entries;
  std::uint64_t size = kEtcdBatchOverhead;
  while (!queue_.empty() && entries.size() < kEtcdBatchEntriesMax) {
    const Ticket& ticket = queue_.front();
    size += kEtcdEntryOverhead + ticket->entry.size();
    const bool alone = !ticket->end_of_session.empty();
    if (!entries.empty() && (alone || size > options_.batch_size_max)) break;
    queue_bytes_ -= ticket->entry.size();
    entries.push_back(ticket->entry);
    flight.end_of_session = ticket->end_of_session;
    flight.tickets.push_back(ticket);
    queue_.pop_front();
    if (alone) break;
  }
  flight.number = ++number_;
  flight.value = encode_etcd_batch(entries);
  retry_ns_ = 0;
  flight_ = std::move(flight);
}

/// The transaction of the flight; if it is voided, one that only uses up its number and the next,
/// so that no sending of it can be carried out any more, and the session's key tells the two apart.
Txn EtcdLogImpl::compose(const Flight& flight) const {
  const std::string number = std::to_string(flight.number + (flight.voided ? 1 : 0));
  Txn txn;
  txn.compares = {value_is(session_key_, std::to_string(flight.number - 1))};
  if (!flight.voided) {
    txn.compares.push_back(value_is(keys_.generation(), std::to_string(options_.generation)));
    txn.compares.push_back(
        version_below(keys_.count(), static_cast<std::int64_t>(flight.base + options_.window)));
    if (!flight.end_of_session.empty())
      txn.compares.push_back(version_is(flight.end_of_session, 0));
    const BatchName name{flight.base, options_.node, incarnation_, flight.number};
    txn.success = {Put{keys_.batch(name), flight.value}, Put{keys_.count(), {}},
                   Range{keys_.count(), {}}};
    if (flight.before.index != 0)
      txn.success.emplace_back(Range{flight.before.key, {}, 0, 0, true});
  }
  txn.success.emplace_back(Put{session_key_, number, lease_});
  txn.failure = {Range{session_key_, {}}, Range{keys_.generation(), {}}, Range{keys_.count(), {}}};
  if (!flight.end_of_session.empty()) txn.failure.emplace_back(Range{flight.end_of_session, {}});
  return txn;
}

void EtcdLogImpl::settle(const Txn& txn, const Result<TxnReply>& reply) {
  if (!reply) {
    settle_error(reply.error());
  } else if (reply->succeeded) {
    settle_success(*reply);
  } else if (reply->ranges.size() != txn.failure.size()) {
    settle_error(Error(Code::kCorrupt, "etcd: an answer is missing"));
  } else {
    settle_refusal(*reply);
  }
}

/// It is in the log. If it follows what was applied here, it need not wait for the watch.
void EtcdLogImpl::settle_success(const TxnReply& reply) {
  std::uint64_t index = 0;
  AppliedBatch before;
  std::string key, value;
  {
    std::lock_guard lock(queue_mutex_);
    if (!flight_) return;
    if (flight_->voided) return void_flight();
    if (!reply.ranges.empty() && reply.ranges[0].items.size() == 1)
      index = static_cast<std::uint64_t>(reply.ranges[0].items[0].version);
    before = flight_->before;
    key = keys_.batch({flight_->base, options_.node, incarnation_, flight_->number});
    value = flight_->value;
    landed();
  }
  note_tail(index);
  // An etcd that was put back may have others before it: then the watch finds that out.
  const bool follows = before.index == 0
                           ? index == 1
                           : index == before.index + 1 && reply.ranges.size() == 2 &&
                                 reply.ranges[1].items.size() == 1 &&
                                 reply.ranges[1].items[0].mod_revision == before.revision;
  std::lock_guard lock(apply_mutex_);
  Status status;
  if (follows && applied_index() == before.index) apply(index, key, reply.revision, value, &status);
}

/// It was not carried out, for one of the conditions, or because an earlier sending was.
void EtcdLogImpl::settle_refusal(const TxnReply& reply) {
  const auto number = session_number(reply.ranges[kSessionRange]);
  const auto& generation = reply.ranges[kGenerationRange].items;
  const auto& count = reply.ranges[kCountRange].items;
  if (reply.ranges[kSessionRange].items.empty()) {
    fail(Error(Code::kFenced, "session " + session_key_ + " has ended"));
    return;
  }
  if (generation.size() != 1 || generation[0].value != std::to_string(options_.generation)) {
    fail(Error(Code::kStale, "the log has another generation"));
    return;
  }
  if (reply.ranges[kSessionRange].items[0].value == kSentAway) {
    fail(Error(Code::kFenced, "session " + session_key_ + " has ended: the node was sent away"));
    return;
  }
  const std::uint64_t index = count.empty() ? 0 : static_cast<std::uint64_t>(count[0].version);
  std::unique_lock lock(queue_mutex_);
  if (!flight_) return;
  if (number == flight_->number) return landed();
  if (flight_->voided && number == flight_->number + 1) return void_flight();
  if (number != flight_->number - 1) {
    lock.unlock();
    fail(Error(Code::kCorrupt, "session " + session_key_ + " has another number: etcd went back"));
    return;
  }
  retry_ns_ = 0;
  if (index >= flight_->base + options_.window) {
    flight_->base = index;
  } else if (!flight_->end_of_session.empty() && !reply.ranges[kEndRange].items.empty()) {
    drop_flight(Error(Code::kBusy, "session " + flight_->end_of_session + " lives"));
  } else {
    back_off();  // no condition is unfulfilled: an answer that makes no sense
  }
}

void EtcdLogImpl::settle_error(const Error& error) {
  std::unique_lock lock(queue_mutex_);
  if (!flight_) return;
  switch (error.code) {
    case Code::kShutdown:
      lock.unlock();
      fail(error);
      return;
    case Code::kTooBig:
    case Code::kInvalid:
    case Code::kAccess:
      back_off();
      drop_flight(error);
      return;
    case Code::kNoSpace: {  // etcd may say so of the transaction that it carried out as the last
      lock.unlock();
      const auto session = client_.range(Range{session_key_, {}}, request_deadline());
      lock.lock();
      if (!flight_) return;
      back_off();
      if (!session || session->items.empty()) {  // its end is told by the next sending
        flight_->unknown = true;
      } else if (session_number(*session) == flight_->number) {
        landed();
      } else if (flight_->voided && session_number(*session) == flight_->number + 1) {
        void_flight();
      } else {
        drop_flight(error);
      }
      return;
    }
    default:
      flight_->unknown = true;
      back_off();
  }
}

/// It is not to happen. If it still may, its number has to be used up first.
void EtcdLogImpl::drop_flight(const Error& error) {
  if (flight_->unknown) {
    if (!flight_->voided) flight_->voided = error;
    return;
  }
  --number_;
  finish(*flight_, error);
  flight_.reset();
}

/// Its number and the next are used up.
void EtcdLogImpl::void_flight() {
  ++number_;
  finish(*flight_, *flight_->voided);
  flight_.reset();
}

/// An answer, or the log itself, showed it there: only its place may be unknown still.
void EtcdLogImpl::landed() {
  landed_.emplace(flight_->number, std::move(*flight_));
  flight_.reset();
}

/// `first`: position of its first entry.
void EtcdLogImpl::finish(Flight& flight, const Result<Position>& first) {
  std::uint64_t offset = 0;
  for (const Ticket& ticket : flight.tickets) {
    if (first)
      ticket->end(Position{first->value + offset++});
    else
      ticket->end(first.error());
  }
}

void EtcdLogImpl::back_off() {
  const std::uint32_t doublings = std::min<std::uint32_t>(flight_->sendings, 6) - 1;
  const std::uint64_t pause_ns =
      flight_->sendings <= 1 ? 0 : std::min(kBackOffMinNs << doublings, kBackOffMaxNs);
  retry_ns_ = clock_.boot_ns() + pause_ns;
}

}  // namespace kvsyncfs::etcd
