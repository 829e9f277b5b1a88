// Following the log: the watch, what it may leave out, and the one place where batches are applied.
#include <fmt/format.h>

#include <utility>

#include "engine/format/etcd_batch.h"
#include "engine/log/etcd/etcd_log_impl.h"

namespace kvsyncfs::etcd {
namespace {

constexpr std::uint64_t kBatchesPerMark = 64;

}  // namespace

/// Applies the batch if it is the next. A value that cannot be read ends the log here: `status`.
/// apply_mutex_ is held.
EtcdLogImpl::Applied EtcdLogImpl::apply(std::uint64_t index, const std::string& key,
                                        std::int64_t revision, std::string_view value,
                                        Status* status) {
  if (index <= applied_index()) return Applied::kOld;
  if (index != applied_index() + 1) return Applied::kGap;
  const auto name = keys_.parse_batch(key);
  const auto entries = decode_etcd_batch(value);
  if (!name || !entries) {
    const Error error = name ? entries.error() : Error(Code::kCorrupt, "log batch: bad key");
    *status = fail(Error(error.code, fmt::format("batch {}: {}", index, error.detail)));
    return Applied::kGap;
  }
  const Position first{last().value + 1};
  for (const std::string_view entry : *entries) {
    const Position position{last().value + 1};
    applier_(position, entry);
    position_.store(position.value, std::memory_order_release);
  }
  applied_ = {index, revision, key};
  index_.store(index, std::memory_order_release);
  if (marks_.empty() || marks_.back().first_index + kBatchesPerMark <= index)
    marks_.push_back({index, index, {}, 0, 0});
  Mark& mark = marks_.back();
  mark = {mark.first_index, index, last(), revision, mark.bytes + value.size()};
  held_bytes_.fetch_add(value.size(), std::memory_order_relaxed);

  std::lock_guard lock(queue_mutex_);
  if (name->node == options_.node && name->incarnation == incarnation_)
    own_batch_applied(name->number, first);
  wake_next();
  return Applied::kDone;
}

/// queue_mutex_ is held. Whoever waited for it has its answer, whatever etcd answered or did not.
void EtcdLogImpl::own_batch_applied(std::uint64_t number, Position first) {
  const auto found = landed_.find(number);
  const bool flying = flight_ && flight_->number == number;
  if (found == landed_.end() && !flying) return;
  Flight& flight = flying ? *flight_ : found->second;
  ++counters_.batches;
  counters_.entries += flight.tickets.size();
  finish(flight, first);
  if (flying)
    flight_.reset();
  else
    landed_.erase(found);
}

/// A batch that is in the log and not applied here starts the time of being behind.
void EtcdLogImpl::note_tail(std::uint64_t index) {
  std::lock_guard lock(queue_mutex_);
  const bool waiting = tail_ > applied_index();
  if (index > tail_ && !waiting) {
    tail_ = index;
    tail_ns_ = clock_.boot_ns();
  }
}

Status EtcdLogImpl::run_watch(std::uint64_t wait_ns) {
  std::lock_guard lock(watch_mutex_);
  KVSYNCFS_TRY(alive());
  if (resync_) KVSYNCFS_TRY(resync());
  if (!watch_) KVSYNCFS_TRY(open_watch());
  const auto batch = watch_->next(clock_.boot_ns() + wait_ns);
  if (!batch) return watch_broke(batch.error());
  heard_ns_ = clock_.boot_ns();
  return take_puts(*batch);
}

/// From the last batch on, which has to come again as it was: etcd may be another than before.
/// Right after a reading, which looked at that, from there on.
Status EtcdLogImpl::open_watch() {
  WatchRequest request{keys_.log(), end_of_prefix(keys_.log()), read_up_to_ + 1};
  expected_.reset();
  if (!just_read_) {
    std::lock_guard lock(apply_mutex_);
    if (applied_.index != 0) {
      expected_ = applied_;
      request.start_revision = applied_.revision;
    }
  }
  KVSYNCFS_ASSIGN(watch_, client_.watch(request, request_deadline()));
  just_read_ = false;
  put_.reset();
  heard_ns_ = clock_.boot_ns();
  std::lock_guard lock(queue_mutex_);
  ++counters_.watches;
  return {};
}

/// Reads what follows the last batch that was applied, at first all there is. Errors: those of
/// replay(); kStale and kCorrupt end the log here, and kBusy asks for another try.
Status EtcdLogImpl::resync() {
  ReplayRequest request;
  request.generation = options_.generation;
  request.window = options_.window;
  request.deadline_ns = [this] { return deadline(options_.timeout_ns); };
  {
    std::lock_guard lock(apply_mutex_);
    if (begun_) request.after = applied_index();
    request.known = begun_ ? applied_ : options_.known;
  }
  ReplayVisitor visitor;
  visitor.begin = [&](const TrimRecord& trim) { return begin_reading(trim); };
  visitor.batch = [&](std::uint64_t index, const KeyValue& batch) -> Status {
    std::lock_guard lock(apply_mutex_);
    Status status;
    const Applied done = apply(index, batch.key, batch.mod_revision, batch.value, &status);
    if (done == Applied::kGap && status)
      return Error(Code::kCorrupt, fmt::format("log batch {} is out of line", index));
    return status;
  };
  const auto report = replay(client_, keys_, request, visitor);
  if (!report) {
    const Code code = report.error().code;
    if (code == Code::kStale || code == Code::kCorrupt) return fail(report.error());
    return report.error();
  }
  resync_ = false;
  just_read_ = true;
  read_up_to_ = report->revision;
  note_tail(report->tail);
  std::lock_guard lock(queue_mutex_);
  ++counters_.resyncs;
  return {};
}

Status EtcdLogImpl::begin_reading(const TrimRecord& trim) {
  std::lock_guard lock(apply_mutex_);
  if (!begun_) {
    if (trim.position > start_after_)
      return Error(Code::kStale,
                   fmt::format("the log begins after position {}, the catalog is at {}",
                               trim.position.value, start_after_.value));
    index_.store(trim.index, std::memory_order_release);
    position_.store(trim.position.value, std::memory_order_release);
    begun_ = true;
  }
  forget_trimmed(trim);
  return {};
}

Status EtcdLogImpl::take_puts(const WatchBatch& batch) {
  for (const KeyValue& put : batch.puts) {
    if (keys_.parse_batch(put.key)) {
      put_ = put;
    } else if (put.key == keys_.count()) {
      KVSYNCFS_TRY(take_count(put));
      if (!watch_) return {};  // a gap: what follows comes by reading
    } else if (put.key == keys_.trim()) {
      if (const auto trim = parse_trim(put.value)) {
        std::lock_guard lock(apply_mutex_);
        forget_trimmed(*trim);
      }
    }
  }
  return {};
}

/// The count tells the index of the batch that came with it.
Status EtcdLogImpl::take_count(const KeyValue& count) {
  const auto index = static_cast<std::uint64_t>(count.version);
  const std::optional<KeyValue> put = std::exchange(put_, std::nullopt);
  if (!put || put->mod_revision != count.mod_revision) {
    close_watch(true);
    return {};
  }
  if (const auto expected = std::exchange(expected_, std::nullopt)) {
    if (index == expected->index && put->key == expected->key &&
        put->mod_revision == expected->revision)
      return {};
    close_watch(true);  // the reading tells whether etcd went back
    return {};
  }
  std::lock_guard lock(apply_mutex_);
  Status status;
  const Applied done = apply(index, put->key, put->mod_revision, put->value, &status);
  const bool rewritten = done == Applied::kOld && put->mod_revision > applied_.revision;
  if ((done == Applied::kGap && status) || rewritten) close_watch(true);
  return status;
}

Status EtcdLogImpl::watch_broke(const Error& error) {
  if (error.code != Code::kTimeout) {
    close_watch(error.code == Code::kStale);
    return error.code == Code::kStale ? Status{} : Status(error);
  }
  if (clock_.boot_ns() - heard_ns_ < options_.silence_ns) return {};
  heard_ns_ = clock_.boot_ns();
  const std::uint64_t applied = applied_index();
  const auto index = tail();
  if (!index) {
    close_watch(false);
    return index.error();
  }
  if (*index > applied && applied == applied_index()) close_watch(true);
  return {};
}

void EtcdLogImpl::close_watch(bool resync) {
  watch_.reset();
  put_.reset();
  expected_.reset();
  resync_ = resync_ || resync;
}

}  // namespace kvsyncfs::etcd
