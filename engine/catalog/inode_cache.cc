#include "engine/catalog/inode_cache.h"

namespace kvsyncfs {

InodeCache::InodeCache() = default;

InodeCache::Place InodeCache::place(InodeId id) const {
  // Ids that follow one another spread over shards and slots; the odd factor breaks up strides of
  // 1024.
  std::uint64_t h = (id.value * 0x9e3779b97f4a7c15ull) >> 32;
  Shard& shard = shards_[h % kShards];
  return {shard, shard.slots[h / kShards % kSlotsPerShard]};
}

bool InodeCache::find(InodeId id, Inode& out) const {
  auto [shard, slot] = place(id);
  std::lock_guard lock(shard.mutex);
  if (slot.id != id) return false;
  out = slot.inode;
  return true;
}

void InodeCache::add(InodeId id, const Inode& inode, Ticket ticket) {
  if (ticket % 2 != 0) return;
  auto [shard, slot] = place(id);
  std::lock_guard lock(shard.mutex);
  if (commits_.load(std::memory_order_acquire) != ticket) return;
  slot = {id, inode};
}

void InodeCache::begin_commit(std::span<const InodeId> changing) {
  commits_.fetch_add(1, std::memory_order_acq_rel);
  for (InodeId id : changing) {
    auto [shard, slot] = place(id);
    std::lock_guard lock(shard.mutex);
    if (slot.id == id) slot.id = {};
  }
}

void InodeCache::put(InodeId id, const Inode& inode) {
  auto [shard, slot] = place(id);
  std::lock_guard lock(shard.mutex);
  slot = {id, inode};
}

}  // namespace kvsyncfs
