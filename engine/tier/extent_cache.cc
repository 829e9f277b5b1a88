#include "engine/tier/extent_cache.h"

namespace kvsyncfs {

Result<ExtentCache::Window> ExtentCache::window(InodeId inode, std::uint64_t offset,
                                                const Loader& load) {
  const Key key{inode, offset / kWindowSize};
  Shard& s = shard(inode);
  std::uint64_t version;
  {
    std::lock_guard lock(s.mutex);
    if (auto it = s.windows.find(key); it != s.windows.end()) return it->second;
    version = s.version;
  }
  auto loaded = load(key.window * kWindowSize, kWindowSize);
  if (!loaded) return loaded.error();
  Window window = std::make_shared<const std::vector<Extent>>(std::move(*loaded));
  std::lock_guard lock(s.mutex);
  if (s.version != version) return window;
  while (!s.windows.empty() && s.extents + window->size() > per_shard_max_) {
    s.extents -= s.windows.begin()->second->size() + 1;
    s.windows.erase(s.windows.begin());
  }
  if (s.windows.emplace(key, window).second) s.extents += window->size() + 1;
  return window;
}

void ExtentCache::forget(InodeId inode, std::uint64_t offset, std::uint64_t length) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  ++s.version;
  const std::uint64_t first = offset / kWindowSize;
  const std::uint64_t last = length == 0 ? first : (offset + length - 1) / kWindowSize;
  const auto drop = [&](auto it) {
    s.extents -= it->second->size() + 1;
    return s.windows.erase(it);
  };
  if (last - first < s.windows.size()) {
    for (std::uint64_t w = first; w <= last; ++w)
      if (auto it = s.windows.find(Key{inode, w}); it != s.windows.end()) drop(it);
    return;
  }
  for (auto it = s.windows.begin(); it != s.windows.end();) {
    const bool hit =
        it->first.inode == inode && it->first.window >= first && it->first.window <= last;
    it = hit ? drop(it) : std::next(it);
  }
}

}  // namespace kvsyncfs
