#include "engine/tier/extent_cache.h"

namespace kvsyncfs {

namespace {

/// Of extents that touch [begin, end), in file order, what lies inside.
void cut_to(std::vector<Extent>& extents, std::uint64_t begin, std::uint64_t end) {
  if (extents.empty()) return;
  Extent& first = extents.front();
  if (first.file_offset < begin) {
    const std::uint64_t before = begin - first.file_offset;
    first = {begin, first.length - before, first.segment, first.segment_offset + before};
  }
  Extent& last = extents.back();
  if (last.file_end() > end) last.length = end - last.file_offset;
}

}  // namespace

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
  const std::uint64_t begin = key.window * kWindowSize;
  auto loaded = load(begin, kWindowSize);
  if (!loaded) return loaded.error();
  cut_to(*loaded, begin, begin + kWindowSize);
  Window window = std::make_shared<const std::vector<Extent>>(std::move(*loaded));
  std::lock_guard lock(s.mutex);
  if (s.version != version) return window;
  while (!s.windows.empty() && s.extents + window->size() + kWindowCost > per_shard_max_) {
    s.extents -= s.windows.begin()->second->size() + kWindowCost;
    s.windows.erase(s.windows.begin());
  }
  if (s.windows.emplace(key, window).second) s.extents += window->size() + kWindowCost;
  return window;
}

void ExtentCache::forget(InodeId inode, std::uint64_t offset, std::uint64_t length) {
  Shard& s = shard(inode);
  std::lock_guard lock(s.mutex);
  ++s.version;
  const std::uint64_t first = offset / kWindowSize;
  const std::uint64_t last = length == 0 ? first : (offset + length - 1) / kWindowSize;
  const auto drop = [&](auto it) {
    s.extents -= it->second->size() + kWindowCost;
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
