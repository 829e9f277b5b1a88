// The bytes of one inode that were written and are not in a segment yet.
//
// Byte-granular: a page frame knows exactly which of its bytes were written, so that a flush names
// no byte that nobody wrote. Pages are ordered by file offset. Thread: one at a time (the inode's
// lock).
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "engine/base/buffer_pool.h"
#include "engine/base/bytes.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

struct ByteRange {
  std::uint64_t begin = 0, end = 0;  ///< file offsets
  auto operator<=>(const ByteRange&) const = default;
};

class DirtyPages {
 public:
  explicit DirtyPages(BufferPool& pool) : pool_(&pool) {}
  ~DirtyPages() { clear(); }
  DirtyPages(const DirtyPages&) = delete;
  DirtyPages& operator=(const DirtyPages&) = delete;

  /// Copies `bytes` in at file offset `offset`.
  void write(std::uint64_t offset, Bytes bytes);
  /// Overwrites the parts of `out` (file bytes from `offset`) that are dirty; returns pages
  /// touched.
  std::size_t overlay(std::uint64_t offset, MutableBytes out) const;
  bool covers(std::uint64_t offset, std::uint64_t length) const;
  /// Forgets [begin, end).
  void drop(std::uint64_t begin, std::uint64_t end);
  void clear();
  void swap(DirtyPages& other) noexcept;
  /// Takes over pages of `older` where this has none of their bytes (newer bytes win); `older` is
  /// empty then.
  void absorb_older(DirtyPages& older);

  /// First dirty range that ends after `offset`, merged over page borders up to its end.
  std::optional<ByteRange> next_range(std::uint64_t offset) const;
  /// Each dirty piece in file order; pieces never cross a page. With `unlogged_only`: of frames not
  /// marked.
  using Visitor = std::function<void(std::uint64_t offset, Bytes piece)>;
  void for_each(const Visitor& visit, bool unlogged_only = false) const;
  /// Everything dirty now is in the log as well; a later write to a page unmarks it.
  void mark_logged();

  /// File offset behind the last dirty byte; 0: there is none.
  std::uint64_t end() const;
  bool empty() const { return pages_.empty(); }
  std::size_t page_count() const { return pages_.size(); }
  /// Bytes of frames (whole pages) that are not marked as logged.
  std::uint64_t unlogged_bytes() const { return unlogged_pages_ * kPageSize; }

 private:
  struct Range {
    std::uint16_t begin, end;  // in the page
  };
  struct Page {
    std::byte* frame = nullptr;
    boost::container::small_vector<Range, 1> ranges;  // sorted, disjoint, not touching
    bool logged = false;
  };
  using Pages = std::map<std::uint64_t, Page>;  // by page number

  static void add_range(Page& page, std::uint16_t begin, std::uint16_t end);
  static void remove_range(Page& page, std::uint16_t begin, std::uint16_t end);
  Pages::iterator erase(Pages::iterator it);

  BufferPool* pool_;
  Pages pages_;
  std::size_t unlogged_pages_ = 0;
};

}  // namespace kvsyncfs
