// Decoded inodes that were read or written lately; apply writes it through.
//
// A reader that missed may add what it then read from RocksDB only if no commit ran meanwhile: the
// sequence number tells. During a commit it is odd, the inodes that change are already out, and
// nobody adds; so no reader can see an older inode after another saw a newer one. Thread: find and
// add any; begin_commit and end_commit by apply only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/format/records.h"

namespace kvsyncfs {

class InodeCache {
 public:
  using Ticket = std::uint64_t;

  InodeCache();

  /// Copies the inode to `out` if it is here.
  bool find(InodeId id, Inode& out) const;

  /// Take before reading RocksDB, give to add.
  Ticket ticket() const { return commits_.load(std::memory_order_acquire); }
  void add(InodeId id, const Inode& inode, Ticket ticket);

  void begin_commit(std::span<const InodeId> changing);
  void put(InodeId id, const Inode& inode);  ///< between begin_commit and end_commit
  void end_commit() { commits_.fetch_add(1, std::memory_order_release); }

 private:
  static constexpr std::size_t kShards = 16, kSlotsPerShard = 1024;
  struct Slot {
    InodeId id;  ///< 0: empty
    Inode inode;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::vector<Slot> slots{kSlotsPerShard};
  };
  struct Place {
    Shard& shard;
    Slot& slot;
  };
  Place place(InodeId id) const;

  mutable std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> commits_{0};
};

}  // namespace kvsyncfs
