// Space: reservation before bytes are accepted (P8), fallocate, copy_file_range, statfs.
#include <algorithm>
#include <utility>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {
constexpr double kDeadShareMin = 0.01;  // a writer waits: nearly anything is worth it
}  // namespace

std::uint64_t EngineImpl::usable_bytes(std::uint64_t size_bytes) const {
  // What is kept back is what lets the cleaner choose victims with few live bytes: with it, a store
  // that is full to 90 % for its users is still about 84 % full for the cleaner.
  const std::uint64_t kept = std::max(size_bytes / 14, 6 * superblock_.segment_size_bytes);
  return size_bytes - std::min(kept, size_bytes / 4);
}

bool EngineImpl::has_room_for(std::uint64_t bytes) const {
  return occupied_bytes() + bytes <= usable_bytes(size_now_);
}

std::uint64_t EngineImpl::occupied_bytes() const {
  if (cluster_) return cluster_->held_live_bytes + dirty_bytes_;
  const CatalogTotals totals = catalog_->totals();
  return totals.live_bytes + totals.reserved_bytes + dirty_bytes_;
}

Status EngineImpl::reserve_space(std::uint64_t bytes, std::uint64_t new_bytes, Replaced replaced) {
  if (cluster_) KVSYNCFS_TRY(cluster_->segments.check_room());
  if (!has_room_for(bytes)) {
    look_at_disk();
    // Dirty bytes may be overwrites, whose old bytes die when they are flushed.
    KVSYNCFS_TRY(flush_everything());
    KVSYNCFS_ASSIGN(const bool room, has_room(new_bytes, replaced));
    if (!room) return Code::kNoSpace;
  }
  const auto reserved = store_->reserve(bytes);
  if (reserved || reserved.error().code != Code::kNoSpace) return reserved;
  return clean_for(bytes);
}

/// An overwrite, and a write to what fallocate reserved, makes no more live bytes: a full store
/// takes it. What is dirty of it is flushed before.
Result<bool> EngineImpl::has_room(std::uint64_t new_bytes, Replaced replaced) {
  std::uint64_t dying = 0;
  if (replaced.length > 0) {
    const auto file = catalog_->inode(replaced.inode);
    if (file && replaced.at_end) replaced.offset = file->size;
    replaced.length = std::min(replaced.length, kFileSizeMax - replaced.offset);
    KVSYNCFS_ASSIGN(dying, bytes_in_extents(replaced.inode, replaced.offset, replaced.length));
  }
  return new_bytes <= dying || has_room_for(new_bytes - dying);
}

/// While a flush is under way its bytes count twice, as reserved and as appended; and dirty
/// overwrites make dead bytes only when they are flushed. So a refusal is final only after
/// everything was flushed. Where the time ends before, bytes that have room may be refused, so that
/// is not said to be a full store.
Status EngineImpl::clean_for(std::uint64_t bytes) {
  const Deadline until = deadline();
  const auto no_room = [] { return Error(Code::kTimeout, "cleaner: no room in time"); };
  std::unique_lock lock(clean_mutex_, std::defer_lock);
  if (!until.lock(lock)) return no_room();
  bool flushed = false;
  for (;;) {
    auto reserved = store_->reserve(bytes);
    if (reserved || reserved.error().code != Code::kNoSpace) return reserved;
    if (until.is_over()) return no_room();
    const Result<bool> cleaned = clean_one(kDeadShareMin);
    if (!cleaned && cleaned.error().code != Code::kNoSpace) return cleaned.error();
    if (cleaned && *cleaned) {
      flushed = false;
      continue;
    }
    if (std::exchange(flushed, true)) return reserved;
    KVSYNCFS_TRY(flush_everything());
  }
}

void EngineImpl::follow_reservations() {
  if (cluster_) return;  // fallocate's bytes have no holders yet
  const std::uint64_t now = catalog_->totals().reserved_bytes;
  std::lock_guard lock(reservation_mutex_);
  if (now < followed_reserved_bytes_) store_->unreserve(followed_reserved_bytes_ - now);
  // allocate() asked for the space before; where others took it meanwhile, the next reserve is
  // refused.
  if (now > followed_reserved_bytes_ && !store_->reserve(now - followed_reserved_bytes_)) return;
  followed_reserved_bytes_ = now;
}

Result<Inode> EngineImpl::set_attributes(InodeId inode, const AttributeChange& change) {
  KVSYNCFS_ASSIGN(const auto begun, begin_change());
  if (change.size && *change.size > kFileSizeMax) return Code::kFileTooBig;
  SetAttrCommand command{inode,
                         change.mode,
                         change.uid,
                         change.gid,
                         change.size,
                         change.atime,
                         change.mtime,
                         change.kill_privileges,
                         change.kill_setgid,
                         false,
                         clock_.now()};
  const bool orders_with_bytes = change.size || change.mtime;
  if (!orders_with_bytes) {
    KVSYNCFS_TRY(commit_one(std::move(command)));
  } else {
    const LiveUse live(live_, inode);
    // A flush under way would bring its older time after this one.
    KVSYNCFS_ASSIGN(const auto no_flush, lock_flush(live.pointer()));
    std::unique_lock lock(live->mutex);
    if (change.size) KVSYNCFS_TRY(load_size(*live));
    if (change.size && !command.mtime) command.mtime = command.time;
    KVSYNCFS_TRY(commit_one(std::move(command), begun));
    live->mtime.reset();
    if (change.size) {
      live->dirty.drop(*change.size, kFileSizeMax);
      live->size = *change.size;
      settle(*live);
    }
    lock.unlock();
    follow_reservations();
  }
  if (change.atime) {
    std::lock_guard lock(atime_mutex_);
    atimes_.erase(inode);
  }
  return attributes(inode);
}

Status EngineImpl::allocate(InodeId inode, std::uint64_t offset, std::uint64_t length,
                            AllocateMode mode) {
  KVSYNCFS_ASSIGN(const auto begun, begin_change());
  if (length == 0) return Code::kInvalid;
  if (offset > kFileSizeMax || length > kFileSizeMax - offset) return Code::kFileTooBig;
  const bool reserves = mode != AllocateMode::kPunchHole;
  const bool keeps_bytes = mode == AllocateMode::kReserve || mode == AllocateMode::kReserveKeepSize;
  const bool keeps_size = mode != AllocateMode::kReserve && mode != AllocateMode::kZeroRange;
  const LiveUse live(live_, inode);
  if (reserves) {
    // Tried out: what apply really reserves is followed below.
    KVSYNCFS_TRY(reserve_space(length, length, {inode, offset, length}));
    store_->unreserve(length);
  }
  KVSYNCFS_ASSIGN(const auto no_flush, lock_flush(live.pointer()));
  // What is dropped below may have made the file longer: the catalog must know that first. The
  // second step takes what was written since the first.
  if (!keeps_bytes) KVSYNCFS_TRY(commit_dirty_locked(live.pointer()));
  std::unique_lock lock(live->mutex);
  KVSYNCFS_TRY(load_size(*live));
  if (!keeps_bytes) KVSYNCFS_TRY(commit_late_bytes(live.pointer(), lock));
  AllocateCommand command{inode, offset, length, mode, clock_.now()};
  KVSYNCFS_TRY(commit_one(std::move(command), begun));
  live->mtime.reset();
  if (!keeps_bytes) live->dirty.drop(offset, offset + length);
  if (!keeps_size) live->size = std::max(live->size, offset + length);
  settle(*live);
  lock.unlock();
  follow_reservations();
  return {};
}

Result<std::uint64_t> EngineImpl::bytes_in_extents(InodeId inode, std::uint64_t offset,
                                                   std::uint64_t length) {
  KVSYNCFS_ASSIGN(const auto extents, catalog_->extents(inode, offset, length, ~std::size_t{0}));
  std::uint64_t bytes = 0;
  for (const Extent& e : extents)
    bytes += std::min(e.file_end(), offset + length) - std::max(e.file_offset, offset);
  return bytes;
}

Result<std::uint64_t> EngineImpl::clone_range(InodeId source, std::uint64_t source_offset,
                                              InodeId target, std::uint64_t target_offset,
                                              std::uint64_t length) {
  KVSYNCFS_ASSIGN(const auto begun, begin_change());
  if (target_offset > kFileSizeMax || length > kFileSizeMax - target_offset)
    return Code::kFileTooBig;
  const Deadline until = deadline();
  auto cloned = clone_once(source, source_offset, target, target_offset, length, begun);
  while (!cloned && cloned.error().code == Code::kBusy) {
    if (until.is_over()) return Error(Code::kTimeout, cloned.error().detail);
    cloned = clone_once(source, source_offset, target, target_offset, length, begun);
  }
  if (cloned || cloned.error().code != Code::kNoSpace) return cloned;
  // As for a write: dirty bytes may be overwrites, whose old bytes die when they are flushed.
  look_at_disk();
  KVSYNCFS_TRY(flush_everything());
  return clone_once(source, source_offset, target, target_offset, length, begun);
}

/// Errors: also kBusy, where another node cut the source between the look at it and the change.
Result<std::uint64_t> EngineImpl::clone_once(InodeId source, std::uint64_t source_offset,
                                             InodeId target, std::uint64_t target_offset,
                                             std::uint64_t length,
                                             std::optional<Incarnation> begun) {
  const LiveUse from(live_, source), to(live_, target);
  std::vector<LiveInodePtr> both{from.pointer(), to.pointer()};
  FlushLocks locks(both);
  KVSYNCFS_TRY(locks.take(deadline()));
  KVSYNCFS_TRY(flush_group(both));
  std::uint64_t size;
  {
    std::unique_lock lock(from->mutex);
    KVSYNCFS_TRY(load_size(*from));
    // What was appended since the flush has no extents yet.
    KVSYNCFS_ASSIGN(const Inode committed, catalog_->inode(source));
    size = std::min(from->size, committed.size);
  }
  if (source_offset >= size) return std::uint64_t{0};
  length = std::min(length, size - source_offset);
  if (source == target && source_offset < target_offset + length &&
      target_offset < source_offset + length)
    return Code::kInvalid;
  KVSYNCFS_ASSIGN(const std::uint64_t shared, bytes_in_extents(source, source_offset, length));
  // A shared byte counts each time.
  KVSYNCFS_ASSIGN(const bool room, has_room(shared, {target, target_offset, length}));
  if (!room) return Code::kNoSpace;
  std::unique_lock lock(to->mutex);
  KVSYNCFS_TRY(load_size(*to));
  const auto done = commit_one(
      CloneRangeCommand{source, target, source_offset, target_offset, length, clock_.now()}, begun);
  if (!done) {
    const auto now = catalog_->inode(source);
    const bool was_cut =
        done.error().code == Code::kInvalid && now && now->size < source_offset + length;
    return was_cut ? Error(Code::kBusy, "the source is cut again and again") : done.error();
  }
  to->dirty.drop(target_offset, target_offset + length);
  to->mtime.reset();
  to->size = std::max(to->size, target_offset + length);
  settle(*to);
  lock.unlock();
  follow_reservations();
  return length;
}

Result<SpaceInfo> EngineImpl::space() {
  if (cluster_) return space_of_cluster();
  if (serving_) look_at_disk();
  const std::uint64_t occupied = occupied_bytes();
  const auto free_of = [occupied](std::uint64_t bytes) {
    return bytes - std::min(occupied, bytes);
  };
  SpaceInfo info;
  info.total_bytes = usable_bytes(superblock_.size_bytes);
  info.free_bytes = free_of(info.total_bytes);
  info.available_bytes = std::min(info.free_bytes, free_of(usable_bytes(size_now_)));
  // Inodes are catalog records, not made in advance: as many as could be if each took half a KiB of
  // what the disk below has left.
  constexpr std::uint64_t kBytesPerInode = 512;
  info.free_inodes = disk_is_full_ ? 0 : info.available_bytes / kBytesPerInode;
  info.total_inodes = catalog_->totals().inodes + info.free_inodes;
  return info;
}

}  // namespace kvsyncfs
