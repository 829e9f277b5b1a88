// Deferred work, one bounded step of each kind a call: flushes, durability within a second,
// checkpoints, cleaning, large reclaims, access times.
#include <algorithm>

#include "engine/engine_impl.h"

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
  const auto step = [this](const char* name, Status status) {
    if (!status) {
      counts_.errors.fetch_add(1, std::memory_order_relaxed);
      options_.warn(std::string(name) + ": " + describe(status.error()));
    }
  };
  step("flush", background_flush(now));
  step("reclaim", background_reclaim());
  step("access times", commit_atimes(false));
  const bool log_is_long = log_->held_bytes() > log_->capacity_bytes() / 2;
  const bool memtable_is_full = catalog_->memtable_bytes() > catalog_options("").memtable_bytes;
  const bool is_old =
      now - last_checkpoint_ns_ > kCheckpointPeriodNs && log_->last() != checkpointed_;
  if (log_is_long || memtable_is_full || is_old) {
    step("checkpoint", checkpoint());
    last_checkpoint_ns_ = now;
  }
  bool cleaned = false;
  if (std::unique_lock lock(clean_mutex_, std::try_to_lock); lock) {
    // What is wholly dead costs nothing to give back; the rest is moved only when space gets short.
    const bool short_of_space = store_->free_bytes() < std::max(superblock_.size_bytes / 20,
                                                                3 * superblock_.segment_size_bytes);
    auto result = clean_one(short_of_space ? kDeadShareMin : kWhollyDead);
    cleaned = result && *result;
    if (!result) step("cleaner", result.error());
  }
  const bool pressure = dirty_bytes_ > options_.write_buffer_bytes / 4;
  return cleaned || pressure ? clock_.boot_ns() : now + kTickNs;
}

Status EngineImpl::background_flush(std::uint64_t now) {
  // Under pressure the oldest go before their age, so that writers do not have to wait.
  const bool pressure = dirty_bytes_ > options_.write_buffer_bytes / 4;
  const std::uint64_t age = options_.write_age_ns;
  KVSYNCFS_TRY(flush_older_than(pressure ? now : now > age ? now - age : 0));
  if (now - last_sync_ns_ >= kSyncPeriodNs && log_->durable() != log_->last()) {
    last_sync_ns_ = now;
    if (auto synced = log_->sync(log_->last()); !synced) return fail(synced.error());
  }
  return {};
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
    KVSYNCFS_TRY(reclaim(inode));
  }
}

/// The catalog so far goes to disk and the log behind it is let go. Everything that the log alone
/// holds of files (WriteInline) is put into segments first.
Status EngineImpl::checkpoint() {
  std::lock_guard lock(checkpoint_mutex_);
  const Position flushed_up_to = log_->last();
  KVSYNCFS_TRY(flush_everything());
  Status begun{};
  KVSYNCFS_TRY(log_->freeze([&](Position) { begun = catalog_->begin_checkpoint(); }));
  KVSYNCFS_TRY(std::move(begun));
  KVSYNCFS_ASSIGN(const Position in_catalog, catalog_->finish_checkpoint());
  KVSYNCFS_TRY(log_->trim(std::min(flushed_up_to, in_catalog)));
  checkpointed_ = log_->last();
  counts_.checkpoints.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace kvsyncfs
