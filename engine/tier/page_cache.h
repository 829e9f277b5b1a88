// The arena: a bounded cache of verified segment pages in one memory mapping, the hot tier of this
// node.
//
// A frame is one 4 KiB page of the mapping; index: (segment, page) -> frame; eviction by CLOCK
// (second chance), which needs no order kept on a hit. Segments are immutable, so a frame is never
// stale; pages of a removed segment just age out. The mapping is reserved at construction and
// filled by use; memory stays within frames + index. Sharded by hash, one mutex per shard, held for
// a page copy only; a hit allocates nothing. Thread: any.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

struct PageKey {
  SegmentId segment;
  std::uint64_t page = 0;  ///< page number in the segment file
  auto operator<=>(const PageKey&) const = default;
};

class PageCache {
 public:
  /// `size_bytes` is rounded down to whole pages; 0 means no cache. Throws std::bad_alloc.
  explicit PageCache(std::uint64_t size_bytes);
  ~PageCache();
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  /// Copies page bytes [offset, offset + out.size()) to `out` if the page is here; false if not.
  bool read(PageKey key, std::size_t offset, MutableBytes out);
  /// Whether the page is here; to be asked is no use of it.
  bool contains(PageKey key) const;
  /// Puts a verified page in; `page` has kPageSize bytes. A page that is here already stays.
  void insert(PageKey key, Bytes page);

  std::uint64_t used_bytes() const;
  std::uint64_t size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvsyncfs
