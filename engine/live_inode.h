// What the engine holds in memory of inodes that are in use: reference counts of those that the
// kernel or a program retains, and the write-buffer state of those that have bytes in flight.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/reference_counts.h"
#include "engine/tier/dirty_pages.h"

namespace kvsyncfs {

struct SentFlush;

/// One inode with bytes on their way. Two layers: `dirty` takes writes, `flushing` is what a flush
/// is writing to a segment right now (frozen, still read from), or has sent to the log without
/// knowing yet what became of it. Lock order: flush_mutex, then mutex; of several inodes in order
/// of their ids.
struct LiveInode {
  LiveInode(InodeId inode, BufferPool& pool) : id(inode), dirty(pool), flushing(pool) {}

  const InodeId id;
  std::timed_mutex flush_mutex;  ///< one flush, cut or clone at a time; held over its disk I/O
  std::shared_mutex mutex;       ///< guards all below; held over a log append, shared over a read

  bool loaded = false;  ///< `size` is right (read from the catalog under `mutex`)
  /// Another node changed the file's bytes or size: `size` has to be looked up again.
  std::atomic<bool> changed_elsewhere = false;
  /// It did so while bytes of this node waited: a later session of this node must not bring them.
  std::atomic<bool> overtaken = false;
  bool gone = false;                 ///< the inode was reclaimed
  std::uint64_t size = 0;            ///< bytes, with what is dirty
  std::optional<Timestamp> mtime;    ///< of writes that no transaction carries yet
  bool listed = false;               ///< in the list of dirty inodes
  std::uint64_t reserved_bytes = 0;  ///< of the store, for pages in `dirty` and `flushing`
  std::atomic<std::uint64_t> counted_bytes = 0;  ///< of its frames, in the engine's total
  /// Boot times of the oldest byte of `dirty` and of `flushing`; 0: none. For counters.
  std::atomic<std::uint64_t> dirty_since_ns = 0, flushing_since_ns = 0;
  DirtyPages dirty, flushing;
  /// The flush that is not done yet; null: there is none, and `flushing` is empty unless the engine
  /// has failed. Shared with the other inodes of the flush. Changed under both mutexes.
  std::shared_ptr<SentFlush> sent;
  std::optional<Timestamp> sent_mtime;  ///< what it carries

  /// What waits, beyond what the catalog has. To be asked before the catalog is: meanwhile it may
  /// come there, and others change it then.
  struct OnWay {
    bool has_flushing;  ///< reads take the bytes from there
    std::uint64_t end;  ///< of its bytes
    std::uint64_t pages;
    std::optional<Timestamp> mtime;
  };
  OnWay on_way() const;
  /// Without its mutex: some are on their way, or were a moment ago.
  bool has_bytes() const { return counted_bytes != 0; }
  bool is_empty() const { return dirty.empty() && flushing.empty() && !mtime; }
  bool clean() const { return is_empty() && !sent; }
};

using LiveInodePtr =
    std::shared_ptr<LiveInode>;  // shared: table, dirty list and running operations

/// Thread: any.
class LiveInodeTable {
 public:
  explicit LiveInodeTable(BufferPool& pool) : pool_(pool) {}

  LiveInodePtr find(InodeId inode);
  LiveInodePtr get_or_add(InodeId inode);
  /// Drops entries that nobody else uses and that are clean.
  void drop_if_idle(InodeId inode);
  std::vector<LiveInodePtr> all() const;

  void retain(InodeId inode, std::uint64_t count);
  /// True if the last reference went.
  bool release(InodeId inode, std::uint64_t count);
  bool retained(InodeId inode);
  std::uint64_t retained_count() const { return retained_count_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kShards = 32;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<InodeId, LiveInodePtr> live;
    ReferenceCounts references;
  };
  Shard& shard(InodeId inode) { return shards_[std::hash<InodeId>{}(inode) % kShards]; }

  BufferPool& pool_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> retained_count_ = 0;
};

/// The live state of an inode for the length of a scope, and gone with it if it holds nothing.
/// Declared before locks of it.
class LiveUse {
 public:
  LiveUse(LiveInodeTable& table, InodeId inode)
      : table_(table), id_(inode), live_(table.get_or_add(inode)) {}
  ~LiveUse() {
    live_.reset();
    table_.drop_if_idle(id_);
  }
  LiveUse(const LiveUse&) = delete;
  LiveUse& operator=(const LiveUse&) = delete;

  LiveInode* operator->() const { return live_.get(); }
  LiveInode& operator*() const { return *live_; }
  const LiveInodePtr& pointer() const { return live_; }

 private:
  LiveInodeTable& table_;
  const InodeId id_;
  LiveInodePtr live_;
};

}  // namespace kvsyncfs
