#include "engine/log/etcd/etcd_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "engine/format/etcd_batch.h"
#include "engine/format/log_generation.h"
#include "engine/log/etcd/etcd_log_impl.h"

namespace kvsyncfs {

namespace {

constexpr std::uint64_t kSetUpTimeoutNs = 5'000'000'000;

}  // namespace

Status format_etcd_log(etcd::EtcdClient& client, Clock& clock, const std::string& volume,
                       std::uint64_t generation, Position base) {
  if (!etcd::is_name(volume) || generation == 0) return Error(Code::kInvalid, "volume " + volume);
  const etcd::LogKeys keys(volume, generation);
  const std::string number = std::to_string(generation);
  etcd::Txn txn;
  txn.compares = {generation == 1
                      ? etcd::version_is(keys.generation(), 0)
                      : etcd::value_is(keys.generation(), std::to_string(generation - 1))};
  txn.success = {etcd::Put{keys.generation(), number},
                 etcd::Put{keys.trim(), etcd::to_text(etcd::TrimRecord{0, base})}};
  KVSYNCFS_ASSIGN(const etcd::TxnReply reply, client.txn(txn, clock.boot_ns() + kSetUpTimeoutNs));
  if (!reply.succeeded)
    return Error(Code::kExists,
                 fmt::format("volume {}: its log is not of generation {}", volume, generation - 1));
  return {};
}

Result<std::uint64_t> next_incarnation(etcd::EtcdClient& client, Clock& clock,
                                       const std::string& volume, const std::string& node,
                                       std::uint64_t generation) {
  if (!etcd::is_name(volume) || !etcd::is_name(node))
    return Error(Code::kInvalid, fmt::format("volume {}, node {}", volume, node));
  const etcd::Range life{etcd::LogKeys(volume, generation).life(node), {}};
  KVSYNCFS_ASSIGN(const etcd::RangeReply lives,
                  client.range(life, clock.boot_ns() + kSetUpTimeoutNs));
  const std::uint64_t lived =
      lives.items.empty() ? 0 : static_cast<std::uint64_t>(lives.items[0].version);
  return incarnations_before(generation) + lived + 1;
}

Result<std::unique_ptr<EtcdLog>> EtcdLog::open(etcd::EtcdClient& client, Clock& clock,
                                               EtcdLogOptions options) {
  const bool sizes = options.batch_size_max >= 4096 && options.batch_size_max <= (1u << 20) &&
                     options.lease_ttl_s >= 1 && options.request_timeout_ns > 0;
  if (!etcd::is_name(options.volume) || !etcd::is_name(options.node) || !sizes)
    return Error(Code::kInvalid,
                 fmt::format("log of volume {}, node {}", options.volume, options.node));
  auto log = std::make_unique<etcd::EtcdLogImpl>(client, clock, std::move(options));
  KVSYNCFS_TRY(log->join());
  return std::unique_ptr<EtcdLog>(std::move(log));
}

namespace etcd {

EtcdLogImpl::EtcdLogImpl(EtcdClient& client, Clock& clock, EtcdLogOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.volume, options_.generation),
      incarnation_(options_.incarnation),
      session_key_(keys_.session(options_.node, options_.incarnation)) {}

Status EtcdLogImpl::why_not_joined(const TxnReply& reply) const {
  if (reply.ranges.size() != 4) return Error(Code::kCorrupt, "etcd: an answer is missing");
  if (!options_.barred_by.empty() && !reply.ranges[2].items.empty())
    return Error(Code::kStale,
                 fmt::format("node {} was removed from volume {}", options_.node, options_.volume));
  if (!options_.sent_away_by.empty() && !reply.ranges[3].items.empty())
    return Error(Code::kNotPermitted,
                 fmt::format("node {} was sent away from volume {} (kvsyncfs-ctl evict --cancel "
                             "calls it back)",
                             options_.node, options_.volume));
  const auto& generation = reply.ranges[0].items;
  const auto& session = reply.ranges[1].items;
  if (generation.empty())
    return Error(Code::kNotFormatted, "no volume " + options_.volume + " in etcd");
  if (generation[0].value != std::to_string(options_.generation))
    return Error(Code::kStale,
                 fmt::format("volume {}: the log is of generation {}, not {}", options_.volume,
                             generation[0].value, options_.generation));
  if (session.size() == 1 && session[0].lease == lease_) return {};  // an earlier sending did it
  return Error(Code::kBusy, "node " + options_.node + " began another life, or has a twin");
}

/// The sessions of former lives go with the transaction that makes ours. It holds only if no life
/// began since we looked: that of a former life, coming late, would end ours.
Status EtcdLogImpl::join() {
  const std::uint64_t until_ns = deadline(options_.timeout_ns);
  const std::uint64_t sent_ns = clock_.boot_ns();
  KVSYNCFS_ASSIGN(const Lease lease, client_.grant_lease(options_.lease_ttl_s, until_ns));
  if (lease.ttl_s <= 0 || lease.id == 0) return Error(Code::kCorrupt, "etcd: a lease of no time");
  lease_ = lease.id;
  lease_ttl_s_ = std::min(lease.ttl_s, options_.lease_ttl_s);
  const std::string life = keys_.life(options_.node);
  KVSYNCFS_ASSIGN(const RangeReply lives, client_.range(Range{life, {}}, until_ns));
  const auto is_own = [&](const std::string& key) {
    return std::find(own_lives_.begin(), own_lives_.end(), key) != own_lives_.end();
  };
  if (!own_lives_.empty() && (lives.items.empty() || !is_own(lives.items[0].value)))
    return Error(Code::kStale, fmt::format("node {}: it lives elsewhere since", options_.node));
  own_lives_.push_back(session_key_);
  // Keys of one length: they compare as their incarnations. One that comes again would be taken for
  // the session that has ended.
  if (!lives.items.empty() && lives.items[0].value >= session_key_)
    return Error(Code::kBusy, fmt::format("node {}: a life of incarnation {} or later was there",
                                          options_.node, incarnation_));
  const std::string all = keys_.sessions(options_.node);
  Txn txn;
  txn.compares = {value_is(keys_.generation(), std::to_string(options_.generation)),
                  version_is(session_key_, 0),
                  version_is(life, lives.items.empty() ? 0 : lives.items[0].version)};
  const auto key_or = [this](const std::string& bar) { return bar.empty() ? session_key_ : bar; };
  for (const std::string& bar : {options_.barred_by, options_.sent_away_by})
    if (!bar.empty()) txn.compares.push_back(version_is(bar, 0));
  txn.success = {Delete{all, session_key_}, Delete{session_key_ + '\0', end_of_prefix(all)},
                 Put{session_key_, "0", lease_}, Put{life, session_key_}};
  txn.failure = {Range{keys_.generation(), {}}, Range{session_key_, {}},
                 Range{key_or(options_.barred_by), {}}, Range{key_or(options_.sent_away_by), {}}};
  Result<TxnReply> reply = client_.txn(txn, until_ns);
  while (!reply && reply.error().code == Code::kTimeout && clock_.boot_ns() < until_ns)
    reply = client_.txn(txn, until_ns);
  if (!reply) return reply.error();
  if (!reply->succeeded) KVSYNCFS_TRY(why_not_joined(*reply));
  const std::uint64_t ttl_ns = static_cast<std::uint64_t>(lease_ttl_s_) * 1'000'000'000;
  lease_until_ns_.store(sent_ns + ttl_ns - ttl_ns / 10, std::memory_order_release);
  renew_ns_ = sent_ns + ttl_ns / 3;
  return {};
}

Status EtcdLogImpl::start(Position applied, Applier applier) {
  std::lock_guard lock(watch_mutex_);
  {
    std::lock_guard apply_lock(apply_mutex_);
    assert(!applier_);
    applier_ = std::move(applier);
    start_after_ = applied;
  }
  KVSYNCFS_TRY(read_to_the_end(deadline(options_.timeout_ns)));
  if (last() < applied)
    return fail(Error(Code::kCorrupt, fmt::format("the log ends at position {}, {} was applied "
                                                  "here: etcd went back",
                                                  last().value, applied.value)));
  std::lock_guard queue_lock(queue_mutex_);
  started_ = true;
  return {};
}

Status EtcdLogImpl::read_to_the_end(std::uint64_t until_ns) {
  Status read = resync();
  while (!read && read.error().code == Code::kBusy && clock_.boot_ns() < until_ns) read = resync();
  return read;
}

Status EtcdLogImpl::sync(Position position) {
  return position <= last() ? Status{} : alive();  // what an append confirmed is durable
}

Status EtcdLogImpl::freeze_at_batch(
    const std::function<void(Position, const AppliedBatch&)>& while_frozen) {
  const std::uint64_t until_ns = deadline(options_.timeout_ns);
  std::unique_lock lock(queue_mutex_);
  while (sending_) {
    if (failure_) return *failure_;
    const std::uint64_t now_ns = clock_.boot_ns();
    if (now_ns >= until_ns) return Error(Code::kTimeout, "an append is under way");
    changed_.wait_for(lock, std::chrono::nanoseconds(until_ns - now_ns));
  }
  if (failure_) return *failure_;
  sending_ = true;  // as if we were sending: nobody else does
  lock.unlock();
  {
    std::lock_guard apply_lock(apply_mutex_);
    while_frozen(last(), applied_);
  }
  lock.lock();
  sending_ = false;
  wake_next();
  return {};
}

Result<std::uint64_t> EtcdLogImpl::tail() {
  AppliedBatch applied = last_batch();
  if (applied.index == 0) applied.index = applied_index();  // all that there was is trimmed
  KVSYNCFS_ASSIGN(const RangeReply reply,
                  client_.range(Range{keys_.count(), {}}, request_deadline()));
  if (reply.items.size() > 1) return Error(Code::kCorrupt, "etcd: two keys for one");
  const std::uint64_t index =
      reply.items.empty() ? 0 : static_cast<std::uint64_t>(reply.items[0].version);
  const bool other = index == applied.index && applied.revision != 0 &&
                     reply.items[0].mod_revision != applied.revision;
  if (index < applied.index || other)
    return fail(Error(Code::kCorrupt,
                      fmt::format("the log ends at batch {}, {} was applied here: etcd went back",
                                  index, applied.index)));
  note_tail(index);
  return index;
}

Status EtcdLogImpl::catch_up() {
  const std::uint64_t until_ns = deadline(options_.timeout_ns);
  KVSYNCFS_ASSIGN(const std::uint64_t index, tail());
  std::unique_lock lock(queue_mutex_);
  while (applied_index() < index) {
    if (failure_) return *failure_;
    const std::uint64_t now_ns = clock_.boot_ns();
    if (now_ns >= until_ns)
      return Error(Code::kTimeout, fmt::format("log batch {} is not applied yet", index));
    changed_.wait_for(lock, std::chrono::nanoseconds(until_ns - now_ns));
  }
  return {};
}

Error EtcdLogImpl::fail(Error error) {
  std::lock_guard lock(queue_mutex_);
  if (!failure_ || failure_->code == Code::kFenced) failure_ = std::move(error);
  lease_until_ns_.store(0, std::memory_order_release);
  for (const Ticket& ticket : queue_) ticket->end(*failure_);
  queue_.clear();
  queue_bytes_ = 0;
  if (flight_) finish(*flight_, *failure_);
  flight_.reset();
  for (auto& [number, flight] : landed_) finish(flight, *failure_);
  landed_.clear();
  changed_.notify_all();
  return *failure_;
}

Status EtcdLogImpl::alive() const {
  std::lock_guard lock(queue_mutex_);
  return failure_ ? Status(*failure_) : Status{};
}

EtcdLogCounters EtcdLogImpl::counters() const {
  std::lock_guard lock(queue_mutex_);
  return counters_;
}

}  // namespace etcd
}  // namespace kvsyncfs
