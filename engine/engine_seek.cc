// Where the data and the holes of a file are: lseek(2) SEEK_DATA and SEEK_HOLE.
#include <algorithm>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {

/// The extents of a file in file order. They come in parts that grow: most calls need the first one
/// or two, and a file may have millions.
class ExtentWalk {
 public:
  ExtentWalk(const Catalog& catalog, InodeId inode, std::uint64_t size)
      : catalog_(catalog), inode_(inode), size_(size) {}

  /// The first one with bytes that ends after `offset`, which never goes back.
  Result<std::optional<Extent>> next(std::uint64_t offset) {
    for (;;) {
      for (; index_ < part_.size(); ++index_)
        if (const Extent& e = part_[index_]; e.segment != kNoSegment && e.file_end() > offset)
          return std::optional(e);
      if (!part_.empty()) from_ = part_.back().file_end();
      from_ = std::max(from_, offset);
      if (is_last_ || from_ >= size_) return std::optional<Extent>();
      KVSYNCFS_ASSIGN(part_, catalog_.extents(inode_, from_, size_ - from_, count_max_));
      is_last_ = part_.size() < count_max_;
      count_max_ = std::min(2 * count_max_, kCountMax);
      index_ = 0;
    }
  }

 private:
  static constexpr std::size_t kCountMin = 4, kCountMax = 4096;

  const Catalog& catalog_;
  const InodeId inode_;
  const std::uint64_t size_;
  std::uint64_t from_ = 0;  // the next part
  std::size_t count_max_ = kCountMin, index_ = 0;
  std::vector<Extent> part_;
  bool is_last_ = false;
};

/// The data of a file in all of its layers.
class DataWalk {
 public:
  DataWalk(const LiveInode* live, ExtentWalk extents)
      : live_(live),
        has_flushing_(live != nullptr && live->on_way().has_flushing),
        extents_(std::move(extents)) {}

  /// The first run of bytes of one layer that ends after `offset`, which never goes back; of those
  /// that cover it, the one that goes furthest.
  Result<std::optional<ByteRange>> next(std::uint64_t offset) {
    std::optional<ByteRange> found;
    const auto take = [&](ByteRange range) {
      range.begin = std::max(range.begin, offset);
      if (!found || range.begin < found->begin ||
          (range.begin == found->begin && range.end > found->end))
        found = range;
    };
    if (live_) {
      if (const auto range = live_->dirty.next_range(offset)) take(*range);
      const auto flushing = live_->flushing.next_range(offset);
      if (has_flushing_ && flushing) take(*flushing);
    }
    KVSYNCFS_ASSIGN(const auto extent, extents_.next(offset));
    if (extent) take({extent->file_offset, extent->file_end()});
    return found;
  }

 private:
  const LiveInode* live_;
  const bool has_flushing_;
  ExtentWalk extents_;
};

}  // namespace

/// As a read: a flush moves bytes from its layer to the catalog, and shows them in both meanwhile.
Result<std::uint64_t> EngineImpl::seek(InodeId inode, std::uint64_t offset, SeekKind kind) {
  const LiveInodePtr live = live_.find(inode);
  std::shared_lock<std::shared_mutex> lock;
  if (live) lock = std::shared_lock(live->mutex);
  KVSYNCFS_ASSIGN(const std::uint64_t size, size_to_read(inode, live.get()));
  if (offset >= size) return Code::kNoSuchRange;
  DataWalk walk(live.get(), ExtentWalk(*catalog_, inode, size));
  for (std::uint64_t at = offset;;) {
    KVSYNCFS_ASSIGN(const auto data, walk.next(at));
    if (kind == SeekKind::kData) {
      if (!data || data->begin >= size) return Code::kNoSuchRange;
      return data->begin;
    }
    if (!data || data->begin > at) return at;
    at = data->end;
    if (at >= size) return size;
  }
}

}  // namespace kvsyncfs
