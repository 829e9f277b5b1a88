// What a node of a cluster and the volume's log in etcd owe each other: a mark by which the node
// knows the log again, and what the log may let go. ARCHITECTURE.md, "The log goes when enough
// nodes have it".
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_impl.h"
#include "engine/log/etcd/log_keys.h"
#include "engine/log_mark_file.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kTrimPeriodNs = 60'000'000'000;
constexpr std::uint64_t kTrimPeriodOfLongLogNs = 1'000'000'000;
}  // namespace

/// A mark makes it harder to be deceived by an etcd that was put back. So one that cannot be read
/// costs that, and not the mount.
AppliedBatch EngineImpl::marked_batch() {
  const auto mark = load_log_mark(disk_, options_.store);
  if (!mark) options_.warn(options_.store + "/log-mark is not used: " + describe(mark.error()));
  if (!mark || !*mark) return {};
  const ClusterSeams& seams = *options_.cluster;
  const std::string batches = etcd::LogKeys(seams.volume, seams.generation).batches();
  if ((*mark)->volume_tag == superblock_.volume_tag() && !(*mark)->key.starts_with(batches))
    return {};  // of a log that is over
  if ((*mark)->volume_tag == superblock_.volume_tag())
    return {(*mark)->index, (*mark)->revision, (*mark)->key};
  options_.warn(options_.store + "/log-mark is not used: it is another volume's");
  return {};
}

Status EngineImpl::mark_log(const AppliedBatch& applied) {
  if (applied.index == 0) return {};  // nothing came since the start, so an earlier mark holds
  return store_log_mark(ballast_.guarded(), options_.store,
                        {superblock_.volume_tag(), applied.index, applied.revision, applied.key});
}

/// Where the last checkpoint could not be made because etcd or its log is gone, the catalog may be
/// the only one that has what was confirmed since. What was applied is on its holders' disks.
/// Nothing is applied any more.
Status EngineImpl::keep_catalog(Position last) {
  if (last <= checkpointed_.load() || !serving_) return {};
  KVSYNCFS_TRY(admit_checkpoint());
  const Deadline until = deadline();
  const AppliedBatch batch = cluster_->log.last_batch();
  KVSYNCFS_TRY(catalog_->begin_checkpoint());
  KVSYNCFS_ASSIGN(checkpointed_, catalog_->finish_checkpoint([&] { return until.is_over(); }));
  return mark_log(batch);
}

/// Until it has told that once, its marker holds the log.
Status EngineImpl::announce_durable() {
  std::lock_guard lock(cluster_->announce_mutex);
  const std::uint64_t until_ns = clock_.boot_ns() + options_.timeout_ns / 3;
  const Position durable = checkpointed_;
  if (durable != cluster_->announced) {
    KVSYNCFS_TRY(cluster_->durable.announce(cluster_->seams.node_name,
                                            cluster_->session.incarnation(), durable, until_ns));
    cluster_->announced = durable;
  }
  if (!cluster_->keeps_log || !serving_) return {};
  KVSYNCFS_TRY(cluster_->durable.let_go(cluster_->seams.node_name, until_ns));
  cluster_->keeps_log = false;
  return {};
}

/// A short log stays: reading it costs a node that comes back less than a catalog.
Status EngineImpl::trim_cluster_log() {
  const std::uint64_t held = log_->held_bytes(), capacity = log_->capacity_bytes();
  const bool is_long = held > capacity / 2;
  const std::uint64_t now_ns = clock_.boot_ns();
  const std::uint64_t period_ns = is_long ? kTrimPeriodOfLongLogNs : kTrimPeriodNs;
  if (held <= capacity / 4 || now_ns - cluster_->log_looked_ns < period_ns) return {};
  const bool is_turn = trims_log(*cluster_->membership.map(), cluster_->seams.node);
  if (!is_turn && !is_long) return {};
  cluster_->log_looked_ns = now_ns;
  KVSYNCFS_ASSIGN(const LogNeeds needs, cluster_->durable.needs(now_ns + options_.timeout_ns / 3));
  const LogLimit limit =
      log_limit(needs, std::min(cluster_->seams.replicas, NodeSegments::kHoldersMin));
  {
    std::lock_guard lock(cluster_->keeper_mutex);
    cluster_->log_keeper = limit.node;
  }
  if (!is_turn) return {};
  const Status trimmed = cluster_->log.trim_if(cluster_->durable.no_marker_since(needs),
                                               std::min(limit.position, checkpointed_.load()));
  return trimmed || trimmed.error().code == Code::kBusy ? Status{} : trimmed;
}

/// In a cluster it is counted since the last checkpoint, as one alone lets nothing of the log go.
bool EngineImpl::log_wants_checkpoint() {
  const std::uint64_t held = log_->held_bytes();
  if (!cluster_) return held > log_limit_bytes() / 2;
  checkpointed_held_bytes_ = std::min(checkpointed_held_bytes_, held);  // it was trimmed
  return held - checkpointed_held_bytes_ > log_->capacity_bytes() / 4;
}

Error EngineImpl::log_is_gone(const Error& error) {
  return Error(error.code, error.detail + ": the log was trimmed meanwhile; mount it again");
}

}  // namespace kvsyncfs
