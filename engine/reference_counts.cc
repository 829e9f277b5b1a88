#include "engine/reference_counts.h"

#include <algorithm>
#include <utility>

namespace kvsyncfs {

namespace {

constexpr std::size_t kSlotsMin = 16;
constexpr std::size_t kShrinkFactor = 4;  // fewer than a quarter of the slots are used

/// At 7/8 a search that fails looks at some thirty slots in a row, which are few cache lines.
bool is_full(std::size_t used, std::size_t slots) { return used >= slots - slots / 8; }

}  // namespace

std::size_t ReferenceCounts::home(InodeId inode) const {
  // Tables lie beside one another by the lower bits of the hash, so the upper ones say where.
  const std::uint64_t mixed = std::hash<InodeId>{}(inode)*0xd6e8feb86659fd93ull;
  return static_cast<std::size_t>((mixed >> 32) * ids_.size() >> 32);
}

std::size_t ReferenceCounts::find(InodeId inode) const {
  if (used_ == 0) return kNone;
  for (std::size_t slot = home(inode); counts_[slot] != 0; slot = next(slot))
    if (ids_[slot] == inode) return slot;
  return kNone;
}

bool ReferenceCounts::add(InodeId inode, std::uint64_t count) {
  if (count == 0) return false;
  if (const std::size_t slot = find(inode); slot != kNone) {
    set(slot, count + (counts_[slot] == kLarge ? large_.at(inode) : counts_[slot]));
    return false;
  }
  if (is_full(used_ + 1, ids_.size())) resize(std::max(kSlotsMin, ids_.size() / 4 * 5));
  place(inode, 1);
  ++used_;
  if (count > 1) set(find(inode), count);
  return true;
}

bool ReferenceCounts::take(InodeId inode, std::uint64_t count) {
  const std::size_t slot = find(inode);
  if (slot == kNone) return false;
  const std::uint64_t had = counts_[slot] == kLarge ? large_.at(inode) : counts_[slot];
  if (had > count) {
    set(slot, had - count);
    return false;
  }
  set(slot, 1);  // nothing of it in large_
  erase(slot);
  if (ids_.size() > kSlotsMin && used_ < ids_.size() / kShrinkFactor)
    resize(std::max(kSlotsMin, ids_.size() / 2));
  return true;
}

void ReferenceCounts::set(std::size_t slot, std::uint64_t count) {
  if (count >= kLarge) {
    large_[ids_[slot]] = count;
    counts_[slot] = kLarge;
    return;
  }
  if (counts_[slot] == kLarge) large_.erase(ids_[slot]);
  counts_[slot] = static_cast<std::uint16_t>(count);
}

void ReferenceCounts::place(InodeId inode, std::uint16_t count) {
  std::size_t slot = home(inode);
  while (counts_[slot] != 0) slot = next(slot);
  ids_[slot] = inode;
  counts_[slot] = count;
}

/// What comes behind moves up where its home allows that, so that no search ends too early.
void ReferenceCounts::erase(std::size_t slot) {
  const std::size_t slots = ids_.size();
  const auto distance = [slots](std::size_t from, std::size_t to) {
    return to >= from ? to - from : to + slots - from;
  };
  std::size_t hole = slot;
  for (std::size_t at = next(slot); counts_[at] != 0; at = next(at)) {
    if (distance(home(ids_[at]), at) < distance(hole, at)) continue;
    ids_[hole] = ids_[at];
    counts_[hole] = counts_[at];
    hole = at;
  }
  counts_[hole] = 0;
  --used_;
}

void ReferenceCounts::resize(std::size_t slots) {
  std::vector<InodeId> ids(slots);
  std::vector<std::uint16_t> counts(slots);
  ids.swap(ids_);
  counts.swap(counts_);
  for (std::size_t slot = 0; slot < ids.size(); ++slot)
    if (counts[slot] != 0) place(ids[slot], counts[slot]);
}

}  // namespace kvsyncfs
