// What a node of a cluster and the volume's log in etcd owe each other: a mark by which the node
// knows the log again, and what the log may let go. ARCHITECTURE.md, "The log goes when everybody
// has it".
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_impl.h"
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

Status EngineImpl::announce_durable() {
  std::lock_guard lock(cluster_->announce_mutex);
  const Position durable = checkpointed_;
  if (durable == cluster_->announced) return {};
  KVSYNCFS_TRY(cluster_->durable.announce(cluster_->seams.node_name, cluster_->seams.incarnation,
                                          durable, clock_.boot_ns() + options_.timeout_ns / 3));
  cluster_->announced = durable;
  return {};
}

/// A short log stays: a node that joins begins with its first entry.
Status EngineImpl::trim_cluster_log() {
  const std::uint64_t held = log_->held_bytes(), capacity = log_->capacity_bytes();
  const bool is_long = held > capacity / 2;
  const std::uint64_t now_ns = clock_.boot_ns();
  const std::uint64_t period_ns = is_long ? kTrimPeriodOfLongLogNs : kTrimPeriodNs;
  if (held <= capacity / 4 || now_ns - cluster_->log_looked_ns < period_ns) return {};
  const bool is_turn = trims_log(*cluster_->membership.map(), cluster_->seams.node);
  if (!is_turn && !is_long) return {};
  cluster_->log_looked_ns = now_ns;
  Position all_have;
  KVSYNCFS_TRY(look_for_log_keeper(&all_have));
  return is_turn ? log_->trim(std::min(all_have, checkpointed_.load())) : Status{};
}

Status EngineImpl::look_for_log_keeper(Position* all_have) {
  const std::uint64_t until_ns = clock_.boot_ns() + options_.timeout_ns / 3;
  KVSYNCFS_ASSIGN(const Position trimmed, cluster_->durable.trimmed(until_ns));
  KVSYNCFS_ASSIGN(const auto nodes, cluster_->records.nodes(until_ns));
  KVSYNCFS_ASSIGN(const auto positions, cluster_->durable.read(until_ns));
  const LeastDurable least = least_durable(nodes, positions, trimmed);
  *all_have = least.position;
  std::lock_guard lock(cluster_->keeper_mutex);
  cluster_->log_keeper = least.node;
  return {};
}

/// In a cluster it is counted since the last checkpoint, as one alone lets nothing of the log go.
bool EngineImpl::log_wants_checkpoint() {
  const std::uint64_t held = log_->held_bytes();
  if (!cluster_) return held > log_limit_bytes() / 2;
  checkpointed_held_bytes_ = std::min(checkpointed_held_bytes_, held);  // it was trimmed
  return held - checkpointed_held_bytes_ > log_->capacity_bytes() / 4;
}

Error EngineImpl::log_is_gone(const Error& error) {
  return Error(error.code, error.detail +
                               ": the volume went on without this store for too long; make it anew "
                               "with mkfs.kvsyncfs --join under a new name, which works while the "
                               "log still has its beginning");
}

}  // namespace kvsyncfs
