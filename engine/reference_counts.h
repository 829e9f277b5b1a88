// How often each inode is referred to. The kernel may know millions, nearly all of them once or
// twice, so this is a table without nodes: 10 bytes an inode, with its free slots 12 to 15, where
// std::unordered_map takes 44 and leaves the heap in pieces. It shrinks when references go.
//
// Invariants: a slot is free if its count is 0; between an inode's home and its slot none is free.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/base/ids.h"

namespace kvsyncfs {

class ReferenceCounts {
 public:
  /// True if it had none, and `count` is not 0.
  bool add(InodeId inode, std::uint64_t count);
  /// True if the last one went. More than there are takes all.
  bool take(InodeId inode, std::uint64_t count);
  bool contains(InodeId inode) const { return find(inode) != kNone; }
  std::size_t size() const { return used_; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  static constexpr std::uint16_t kLarge = UINT16_MAX;  ///< the count stands in large_

  std::size_t home(InodeId inode) const;
  std::size_t next(std::size_t slot) const { return slot + 1 == ids_.size() ? 0 : slot + 1; }
  std::size_t find(InodeId inode) const;  ///< its slot, or kNone
  void place(InodeId inode, std::uint16_t count);
  void erase(std::size_t slot);
  void resize(std::size_t slots);
  void set(std::size_t slot, std::uint64_t count);

  std::size_t used_ = 0;
  std::vector<InodeId> ids_;
  std::vector<std::uint16_t> counts_;  // beside ids_: together they would be padded to 16 bytes
  std::unordered_map<InodeId, std::uint64_t> large_;
};

}  // namespace kvsyncfs
