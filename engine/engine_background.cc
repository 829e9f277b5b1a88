// Deferred work, one bounded step of each kind a call: flushes, durability within a second,
// checkpoints, cleaning, large reclaims, access times.
#include <algorithm>

#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kTickNs = 250'000'000;
constexpr std::uint64_t kSyncPeriodNs = 1'000'000'000;         // LocalLog: durable within 1 s
constexpr std::uint64_t kCheckpointPeriodNs = 60'000'000'000;  // keeps recovery short
constexpr double kDeadShareMin = 0.1;  // less is not worth moving the rest while nobody waits
}  // namespace

std::uint64_t EngineImpl::run_background() {
  const std::uint64_t now = clock_.boot_ns();
  if (closed_ || failed_ || options_.read_only) return now + kTickNs;
  background_look_at_disk();
  tell("flush", background_flush(now));
  tell("reclaim", background_reclaim());
  tell("access times", commit_atimes(false));
  const bool log_is_long = log_wants_checkpoint();
  const bool memtable_is_full =
      catalog_->memtable_bytes() > catalog_options("", memory_bytes()).memtable_bytes;
  const bool is_old =
      now - last_checkpoint_ns_ > kCheckpointPeriodNs && log_->last() != checkpointed_.load();
  if (log_is_long || memtable_is_full || is_old) {
    checkpointed_held_bytes_ = log_->held_bytes();
    tell("checkpoint", checkpoint());
    last_checkpoint_ns_ = now;
  }
  bool cleaned = false;
  if (std::unique_lock lock(clean_mutex_, std::try_to_lock); lock) {
    // What is wholly dead costs nothing to give back; the rest is moved only when space gets short.
    const bool short_of_space = store_->free_bytes() < std::max(superblock_.size_bytes / 20,
                                                                3 * superblock_.segment_size_bytes);
    auto result = clean_one(short_of_space ? kDeadShareMin : kWhollyDead);
    cleaned = result && *result;
    tell("cleaner", result ? Status{} : Status(result.error()));
  }
  if (!cluster_) static_cast<void>(admin_->scrub_by_itself());  // else a task of its own
  const bool pressure = dirty_bytes_ > options_.write_buffer_bytes / 4;
  return cleaned || pressure ? clock_.boot_ns() : now + kTickNs;
}

void EngineImpl::tell(std::string_view step, const Status& status) {
  if (status) {
    told_.erase(step);
    return;
  }
  counts_.errors.fetch_add(1, std::memory_order_relaxed);
  std::string line = std::string(step) + ": " + describe(status.error());
  if (std::string& told = told_[step]; told != line) {
    options_.warn(line);
    told = std::move(line);
  }
}

Status EngineImpl::background_flush(std::uint64_t now) {
  // Under pressure the oldest go before their age, so that writers do not have to wait.
  const bool pressure = dirty_bytes_ > options_.write_buffer_bytes / 4;
  const std::uint64_t age = options_.write_age_ns;
  KVSYNCFS_TRY(flush_older_than(pressure ? now : now > age ? now - age : 0));
  if (now - last_sync_ns_ >= kSyncPeriodNs && log_->durable() != log_->last()) {
    last_sync_ns_ = now;
    return sync_log();
  }
  return {};
}

/// Says once that the disk is full, and once that it is not any more.
void EngineImpl::background_look_at_disk() {
  static_cast<void>(disk_has_room());
  look_at_disk();
  const auto lines = degraded();
  std::string line = lines.empty() ? std::string() : lines.front();
  if (line == disk_told_) return;
  options_.warn(line.empty() ? options_.store + ": nothing is degraded any more" : line);
  disk_told_ = std::move(line);
}

Status EngineImpl::background_reclaim() {
  for (;;) {
    InodeId inode;
    {
      std::lock_guard lock(orphans_mutex_);
      if (reclaim_queue_.empty()) return {};
      inode = reclaim_queue_.front();
      reclaim_queue_.pop_front();
    }
    const Status freed = reclaim(inode);
    if (!freed && freed.error().code == Code::kTimeout) reclaim_later(inode);
    KVSYNCFS_TRY(freed);
  }
}

/// The catalog so far goes to disk and the log behind it is let go. Everything that the log alone
/// holds of files (WriteInline) is put into segments first.
Status EngineImpl::checkpoint() {
  const Deadline until = deadline();
  std::unique_lock lock(checkpoint_mutex_, std::defer_lock);
  if (!until.lock(lock)) return Error(Code::kTimeout, "checkpoint: another one does not end");
  return checkpoint_locked(until);
}

Status EngineImpl::make_room_in_log() {
  const Deadline until = deadline();
  std::unique_lock lock(checkpoint_mutex_, std::defer_lock);
  if (!until.lock(lock)) return Error(Code::kTimeout, "log: no room in time");
  // The one that was waited for may have made it.
  return log_->held_bytes() > log_limit_bytes() / 2 ? checkpoint_locked(until) : Status{};
}

Status EngineImpl::checkpoint_locked(const Deadline& until) {
  KVSYNCFS_TRY(admit_checkpoint());
  const Position flushed_up_to = log_->last();
  KVSYNCFS_TRY(flush_everything());
  Status begun{};
  AppliedBatch batch;
  if (cluster_)
    KVSYNCFS_TRY(cluster_->log.freeze_at_batch([&](Position, const AppliedBatch& last) {
      begun = catalog_->begin_checkpoint();
      batch = last;
    }));
  else
    KVSYNCFS_TRY(log_->freeze([&](Position) { begun = catalog_->begin_checkpoint(); }));
  KVSYNCFS_TRY(std::move(begun));
  KVSYNCFS_ASSIGN(const Position in_catalog,
                  catalog_->finish_checkpoint([&] { return until.is_over(); }));
  if (cluster_)
    KVSYNCFS_TRY(mark_log(batch));
  else
    KVSYNCFS_TRY(log_->trim(std::min(flushed_up_to, in_catalog)));
  checkpointed_ = in_catalog;
  counts_.checkpoints.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace kvsyncfs
