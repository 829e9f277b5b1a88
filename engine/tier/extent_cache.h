// Extents of files that are being read, so that a hot read asks the catalog nothing.
//
// Kept by windows of 4 MiB of a file; a window holds what lies inside it of the extents that touch
// it, for a change outside may cut the rest of them. A change of extents forgets the windows that
// it touches. A load that a change overtook is not kept (the shard's version tells), so that a
// cached window is never older than the catalog. Bounded by extents, a window itself counted as
// some; the window that is evicted is any other one of the shard. Thread: any; one mutex per shard,
// held for look-ups only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/format/records.h"

namespace kvsyncfs {

class ExtentCache {
 public:
  static constexpr std::uint64_t kWindowSize = 4u << 20;  ///< bytes of a file
  using Window =
      std::shared_ptr<const std::vector<Extent>>;  ///< shared: readers outlive an eviction
  using Loader =
      std::function<Result<std::vector<Extent>>(std::uint64_t offset, std::uint64_t length)>;

  /// `size_bytes`: what the cache takes at most, or one window a shard.
  explicit ExtentCache(std::uint64_t size_bytes)
      : per_shard_max_(size_bytes / sizeof(Extent) / kShards) {}

  /// The extents in the window of file offset `offset`, cut to it, in file order; `load` brings
  /// those that touch it if it is not here.
  Result<Window> window(InodeId inode, std::uint64_t offset, const Loader& load);
  /// Extents in [offset, offset + length) changed.
  void forget(InodeId inode, std::uint64_t offset, std::uint64_t length);

 private:
  static constexpr std::size_t kShards = 16;
  /// Extents that take as much memory as a window without any: a file of one is mostly this.
  static constexpr std::size_t kWindowCost = 5;
  struct Key {
    InodeId inode;
    std::uint64_t window;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const {
      return std::hash<InodeId>{}(InodeId{k.inode.value * 31 + k.window});
    }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Key, Window, KeyHash> windows;
    std::size_t extents = 0;
    std::uint64_t version = 0;
  };
  // By inode, so that a change of a whole file visits one shard.
  Shard& shard(InodeId inode) { return shards_[std::hash<InodeId>{}(inode) % kShards]; }

  std::size_t per_shard_max_;
  std::array<Shard, kShards> shards_;
};

}  // namespace kvsyncfs
