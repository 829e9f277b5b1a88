#include "engine/net/tcp/regions.h"

#include <cstring>
#include <mutex>

namespace kvsyncfs {

Result<RegionKey> Regions::add(Bytes memory) {
  std::lock_guard lock(mutex_);
  if (regions_.size() >= kCountMax) return Error(Code::kNoMemory, "too many regions");
  // A random key is never met again by a peer that holds an old one.
  for (;;) {
    const RegionKey key{random_.next()};
    if (key.value != 0 && regions_.emplace(key, memory).second) return key;
  }
}

void Regions::remove(RegionKey key) {
  std::lock_guard lock(mutex_);
  regions_.erase(key);
}

Result<Bytes> Regions::find(RegionKey key, std::uint64_t offset, std::uint64_t length) const {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return Code::kStale;
  const Bytes memory = found->second;
  if (offset > memory.size() || length > memory.size() - offset)
    return Error(Code::kInvalid, "read beyond the region");
  return memory.subspan(offset, length);
}

Status Regions::check(RegionKey key, std::uint64_t offset, std::uint64_t length) const {
  std::shared_lock lock(mutex_);
  KVSYNCFS_TRY(find(key, offset, length));
  return {};
}

Status Regions::copy(RegionKey key, std::uint64_t offset, MutableBytes out) const {
  std::shared_lock lock(mutex_);
  KVSYNCFS_ASSIGN(const Bytes bytes, find(key, offset, out.size()));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return {};
}

}  // namespace kvsyncfs
