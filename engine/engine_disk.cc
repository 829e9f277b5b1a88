// The disk below the store, which others may fill: what is kept of it, and who is refused when it
// is full. ARCHITECTURE.md, "Others may fill the disk".
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

namespace {
/// Beside the memtables: RocksDB's own records of its files, and what was deferred.
constexpr std::uint64_t kCheckpointBytes = 1u << 20;
}  // namespace

/// What a checkpoint at half of the log's capacity may write, and a segment for what a recovery
/// finds.
std::uint64_t ballast_bytes(const Superblock& superblock) {
  return superblock.log_file_size_bytes * (superblock.log_file_count_max / 2) +
         superblock.segment_size_bytes;
}

Status EngineImpl::open_ballast() {
  if (options_.read_only) return {};
  KVSYNCFS_TRY(ballast_.open());
  return ballast_.restore(superblock_.log_file_size_bytes);
}

/// The log's next file, and the ballast where it has to be made again. Before that a recovery takes
/// what it needs.
std::uint64_t EngineImpl::keep_free_bytes() const {
  if (!serving_) return 0;
  return superblock_.log_file_size_bytes + (ballast_.has_bytes() ? 0 : ballast_.size_bytes());
}

void EngineImpl::look_at_disk() {
  const auto space = disk_.space(options_.store);
  if (!space) return;  // what was known stays
  lacks_inodes_ = serving_ && inodes_left(*space) <= kInodesKept;
  const std::uint64_t room =
      lacks_inodes_ ? 0
                    : space->available_bytes - std::min(keep_free_bytes(), space->available_bytes);
  disk_is_full_ = room == 0;
  size_now_ = std::min(superblock_.size_bytes, store_->counters().files_bytes + room);
}

bool EngineImpl::disk_has_room() {
  if (!disk_is_full_ && ballast_.is_there()) return true;
  static_cast<void>(ballast_.restore(superblock_.log_file_size_bytes));
  look_at_disk();
  return !disk_is_full_;
}

Status EngineImpl::admit_growth() {
  KVSYNCFS_TRY(admit_change());
  if (disk_has_room()) return {};
  return Error(Code::kNoSpace, options_.store + (lacks_inodes_ ? ": the disk has no free inodes"
                                                               : ": the disk is full"));
}

/// On a full disk checkpoints come early, so that the log goes round in the files that it has and a
/// checkpoint is small.
std::uint64_t EngineImpl::log_limit_bytes() const {
  const bool is_tight = disk_is_full_ || !ballast_.is_there();
  return is_tight ? superblock_.log_file_size_bytes / 2 : log_->capacity_bytes();
}

/// Early checkpoints write about a quarter of what their memtables count: the rest is keys that
/// came again, what compression saves, and overhead.
Status EngineImpl::admit_checkpoint() {
  return ballast_.is_there() ? Status{}
                             : ballast_.probe(catalog_->memtable_bytes() / 4 + kCheckpointBytes);
}

std::vector<std::string> EngineImpl::degraded() const {
  if (options_.read_only) return {};
  constexpr double kMiB = 1 << 20;
  std::vector<std::string> lines;
  if (failed_) {
    std::lock_guard lock(failure_mutex_);
    lines.push_back(options_.store +
                    ": takes no more changes until it is mounted again: " + describe(*failure_));
  }
  if (lacks_inodes_ || !ballast_.has_inodes())
    lines.push_back(fmt::format(
        "{}: the disk is full, it has no free inodes; the store does not grow until {} are free",
        options_.store, Ballast::kSpareFiles + kInodesKept));
  if (!ballast_.has_bytes())
    lines.push_back(fmt::format(
        "{}: the disk is full, the ballast of {:.0f} MiB is given up until {:.0f} MiB are free",
        options_.store, static_cast<double>(ballast_.size_bytes()) / kMiB,
        static_cast<double>(ballast_.size_bytes() + superblock_.log_file_size_bytes) / kMiB));
  else if (disk_is_full_ && !lacks_inodes_)
    lines.push_back(options_.store + ": the disk is full, the store does not grow");
  if (std::string line = admin_->scrub_trouble(); !line.empty()) lines.push_back(std::move(line));
  if (!cluster_) return lines;
  if (cluster_->session.is_out())
    lines.push_back("this node has no session: it joins again when it reaches the others, and may");
  if (std::string line = cluster_->segments.degraded(); !line.empty())
    lines.push_back(std::move(line));
  if (cluster_->at_risk > 0)
    lines.push_back(fmt::format("{} segments lack a holder", cluster_->at_risk.load()));
  if (cluster_->catalogs_differ)
    lines.push_back("the catalogs of two nodes differ, and no third one says which is right");
  std::lock_guard lock(cluster_->keeper_mutex);
  if (!cluster_->log_keeper.empty() && log_->held_bytes() > log_->capacity_bytes() / 2)
    lines.push_back(fmt::format(
        "the log in etcd holds {:.0f} of {:.0f} MiB, because node {} has no more of it on disk; "
        "when it is full nothing can be changed",
        static_cast<double>(log_->held_bytes()) / kMiB,
        static_cast<double>(log_->capacity_bytes()) / kMiB, cluster_->log_keeper));
  return lines;
}

}  // namespace kvsyncfs
