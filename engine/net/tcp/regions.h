// The memory that peers may read. Invariant: after remove() returns, nothing touches the memory.
// Thread: any; a copy holds the lock shared for as long as it copies.
#pragma once

#include <shared_mutex>
#include <unordered_map>

#include "engine/env/random.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

class Regions {
 public:
  static constexpr std::size_t kCountMax = 65536;

  explicit Regions(Random& random) : random_(random) {}

  /// Errors: kNoMemory.
  Result<RegionKey> add(Bytes memory);
  void remove(RegionKey key);
  /// Errors: kStale, kInvalid.
  Status check(RegionKey key, std::uint64_t offset, std::uint64_t length) const;
  /// Errors: kStale, kInvalid; `out` is unchanged then.
  Status copy(RegionKey key, std::uint64_t offset, MutableBytes out) const;

 private:
  /// The lock is held.
  Result<Bytes> find(RegionKey key, std::uint64_t offset, std::uint64_t length) const;

  Random& random_;
  mutable std::shared_mutex mutex_;  // a leaf
  std::unordered_map<RegionKey, Bytes> regions_;
};

}  // namespace kvsyncfs
