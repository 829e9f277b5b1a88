#include "engine/live_inode.h"

#include <algorithm>

#include "engine/sent_flush.h"

namespace kvsyncfs {

LiveInode::OnWay LiveInode::on_way() const {
  const bool has_landed = sent && *sent->has_landed;
  OnWay found{!has_landed, dirty.end(), dirty.page_count(), mtime};
  if (has_landed && mtime == sent_mtime) found.mtime.reset();
  if (has_landed) return found;
  found.end = std::max(found.end, flushing.end());
  found.pages += flushing.page_count();
  return found;
}

LiveInodePtr LiveInodeTable::find(InodeId inode) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  auto it = s.live.find(inode);
  return it == s.live.end() ? nullptr : it->second;
}

LiveInodePtr LiveInodeTable::get_or_add(InodeId inode) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  auto [it, added] = s.live.try_emplace(inode);
  if (added) it->second = std::make_shared<LiveInode>(inode, pool_);
  return it->second;
}

void LiveInodeTable::drop_if_idle(InodeId inode) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  auto it = s.live.find(inode);
  // New users come through this shard's mutex, so a count of 1 stays 1 while it is held.
  if (it != s.live.end() && it->second.use_count() == 1 && it->second->clean()) s.live.erase(it);
}

std::vector<LiveInodePtr> LiveInodeTable::all() const {
  std::vector<LiveInodePtr> found;
  for (const Shard& s : shards_) {
    std::lock_guard lock(s.mutex);
    for (const auto& [id, live] : s.live) found.push_back(live);
  }
  return found;
}

void LiveInodeTable::retain(InodeId inode, std::uint64_t count) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  if (s.references.add(inode, count)) retained_count_.fetch_add(1, std::memory_order_relaxed);
}

bool LiveInodeTable::release(InodeId inode, std::uint64_t count) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  if (!s.references.take(inode, count)) return false;
  retained_count_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool LiveInodeTable::retained(InodeId inode) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  return s.references.contains(inode);
}

}  // namespace kvsyncfs
