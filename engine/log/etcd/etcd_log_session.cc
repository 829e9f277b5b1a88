// The session's lease, and the end of what the log holds.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/log/etcd/etcd_log_impl.h"

namespace kvsyncfs::etcd {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kBasesPerDelete = 256;

}  // namespace

std::uint64_t EtcdLogImpl::run_keep_alive() {
  std::lock_guard keeper(keeper_mutex_);
  const std::uint64_t ttl_ns = static_cast<std::uint64_t>(lease_ttl_s_) * kSecond;
  if (!alive()) return kNever;
  if (clock_.boot_ns() < renew_ns_) return renew_ns_;
  const auto index = tail();  // what we have not applied a third of a lease later, we are behind by
  if (!alive()) return kNever;
  std::uint64_t behind_ns = 0;
  {
    std::lock_guard lock(queue_mutex_);
    if (tail_ > applied_index()) behind_ns = clock_.boot_ns() - tail_ns_;
    if (!started_) behind_ns = 0;
    if (behind_ns > ttl_ns / 3) ++counters_.withheld;
  }
  renew_ns_ = clock_.boot_ns() + ttl_ns / 10;
  if (!index || behind_ns > ttl_ns / 3) return renew_ns_;

  const std::uint64_t sent_ns = clock_.boot_ns();
  const auto session = client_.range(Range{session_key_, {}}, request_deadline());
  if (!session) return renew_ns_;
  if (!session->items.empty() && session->items[0].value == kSentAway) {
    fail(Error(Code::kFenced, "session " + session_key_ + " has ended: the node was sent away"));
    return kNever;
  }
  const std::uint64_t until_ns = std::min(options_.request_timeout_ns, ttl_ns / 3);
  const auto lease = client_.keep_alive(lease_, sent_ns + until_ns);
  if (!lease) {
    if (lease.error().code != Code::kNotFound) return renew_ns_;
    fail(Error(Code::kFenced, "session " + session_key_ + " has ended: its lease is gone"));
    return kNever;
  }
  std::lock_guard lock(queue_mutex_);
  if (failure_) return kNever;
  const std::uint64_t granted_ns = std::min(
      ttl_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(lease->ttl_s, 0)) * kSecond);
  const std::uint64_t valid_until_ns = sent_ns + granted_ns - granted_ns / 10;
  if (valid_until_ns > lease_until_ns()) lease_until_ns_.store(valid_until_ns);
  ++counters_.renewals;
  return renew_ns_ = sent_ns + ttl_ns / 3;
}

void EtcdLogImpl::give_way(const std::string& why) {
  fail(Error(Code::kFenced, "session " + session_key_ + " was given up: " + why));
}

Status EtcdLogImpl::free_lease() {
  return client_.revoke_lease(lease_, deadline(options_.request_timeout_ns));
}

Status EtcdLogImpl::rejoin(std::uint64_t incarnation,
                           const std::function<Status()>& before_reading) {
  const std::uint64_t until_ns = deadline(options_.timeout_ns);
  std::lock_guard keeper(keeper_mutex_);
  std::lock_guard watch(watch_mutex_);
  KVSYNCFS_TRY(become(incarnation, until_ns));
  Status joined = join();
  if (joined) joined = before_reading();
  if (joined) {
    close_watch(true);
    joined = read_to_the_end(until_ns);
  }
  std::lock_guard lock(queue_mutex_);
  sending_ = false;
  changed_.notify_all();
  if (joined && failure_->code != Code::kFenced) joined = *failure_;  // it was left meanwhile
  if (joined)
    failure_.reset();
  else
    lease_until_ns_.store(0, std::memory_order_release);
  return joined;
}

/// Nobody sends from here to the end of rejoin().
Status EtcdLogImpl::become(std::uint64_t incarnation, std::uint64_t until_ns) {
  std::unique_lock lock(queue_mutex_);
  if (!failure_) return Error(Code::kInvalid, "the session has not ended");
  if (failure_->code != Code::kFenced) return *failure_;
  while (sending_) {
    const std::uint64_t now_ns = clock_.boot_ns();
    if (now_ns >= until_ns) return Error(Code::kTimeout, "an append is under way");
    changed_.wait_for(lock, std::chrono::nanoseconds(until_ns - now_ns));
  }
  sending_ = true;
  incarnation_ = incarnation;
  session_key_ = keys_.session(options_.node, incarnation);
  number_ = 0;
  retry_ns_ = tail_ = 0;
  return {};
}

Status EtcdLogImpl::leave() {
  fail(Error(Code::kShutdown, "the session was left"));
  return free_lease();
}

/// The record first, so that nobody looks for what goes; then the keys, in steps; then history.
Status EtcdLogImpl::trim_on(const std::vector<Compare>& conditions, Position position) {
  KVSYNCFS_TRY(alive());
  const std::uint64_t until_ns = deadline(options_.timeout_ns);
  std::optional<Mark> mark;
  {
    std::lock_guard lock(apply_mutex_);
    for (const Mark& candidate : marks_)
      if (candidate.position <= position) mark = candidate;
  }
  if (!mark) return {};
  KVSYNCFS_TRY(write_trim(conditions, {mark->last_index, mark->position}, until_ns));
  KVSYNCFS_TRY(delete_batches(mark->last_index, until_ns));
  std::int64_t compacted = 0;
  {
    std::lock_guard lock(apply_mutex_);
    compacted = std::exchange(compacted_, std::max(compacted_, mark->revision));
  }
  if (compacted >= mark->revision) return {};
  const Status status = client_.compact(mark->revision, until_ns);
  return status || status.error().code == Code::kStale ? Status{} : status;
}

Status EtcdLogImpl::write_trim(const std::vector<Compare>& conditions, const TrimRecord& record,
                               std::uint64_t until_ns) {
  for (;;) {
    KVSYNCFS_ASSIGN(const RangeReply found, client_.range(Range{keys_.trim(), {}}, until_ns));
    const auto old = found.items.size() == 1 ? parse_trim(found.items[0].value) : std::nullopt;
    if (!old) return Error(Code::kCorrupt, "log in etcd: bad trim record");
    if (old->index >= record.index) break;
    Txn txn;
    txn.compares = {value_is(keys_.trim(), found.items[0].value),
                    value_is(keys_.generation(), std::to_string(options_.generation))};
    txn.compares.insert(txn.compares.end(), conditions.begin(), conditions.end());
    txn.success = {Put{keys_.trim(), to_text(record)}};
    txn.failure = {Range{keys_.generation(), {}}};
    KVSYNCFS_ASSIGN(const TxnReply reply, client_.txn(txn, until_ns));
    if (reply.succeeded) break;
    if (!conditions.empty()) return Error(Code::kBusy, "trim of the log: somebody needs it since");
    if (clock_.boot_ns() >= until_ns) return Error(Code::kTimeout, "trim of the log");
  }
  std::lock_guard lock(apply_mutex_);
  forget_trimmed(record);
  return {};
}

/// Batches whose base is at least the window below `index`: none behind it can be among them.
Status EtcdLogImpl::delete_batches(std::uint64_t index, std::uint64_t until_ns) {
  if (index <= options_.window) return {};
  const std::uint64_t end_base = index - options_.window + 1;
  for (;;) {
    const Range oldest{keys_.batches(), keys_.batches_from(end_base), 1, 0, true};
    KVSYNCFS_ASSIGN(const RangeReply found, client_.range(oldest, until_ns));
    if (found.items.empty()) return {};
    const auto name = keys_.parse_batch(found.items[0].key);
    if (!name || name->base >= end_base) return Error(Code::kCorrupt, "etcd: a range out of order");
    const std::uint64_t step_end = std::min(name->base + kBasesPerDelete, end_base);
    Txn txn;
    txn.success = {Delete{found.items[0].key, keys_.batches_from(step_end)}};
    KVSYNCFS_TRY(client_.txn(txn, until_ns));
  }
}

/// apply_mutex_ is held.
void EtcdLogImpl::forget_trimmed(const TrimRecord& trim) {
  if (trim.index > trim_.index) trim_ = trim;
  while (!marks_.empty() && marks_.front().last_index <= trim.index) {
    held_bytes_.fetch_sub(marks_.front().bytes, std::memory_order_relaxed);
    marks_.pop_front();
  }
}

}  // namespace kvsyncfs::etcd
