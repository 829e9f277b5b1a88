// Which pages of a segment file hold data, and their checksums: the content of its checksum pages.
// Thread: one writer or many readers; the segment locks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/disk.h"
#include "engine/store/segment_store.h"

namespace kvsyncfs {

/// A batch by its place.
struct PageBatch {
  std::uint32_t page = 0;        ///< of its checksum page; the data pages follow
  std::uint32_t page_count = 0;  ///< data pages
  std::uint32_t end() const { return page + 1 + page_count; }
};

class SegmentTable {
 public:
  /// Makes place for the checksums of `page_count` pages, so that batches below it move nothing.
  void prepare(std::size_t page_count) { checksums_.resize(page_count); }
  /// Batches come in order of their pages.
  void add(std::uint32_t page, std::span<const std::uint32_t> checksums);
  /// One that lies anywhere; without effect where another one has pages of it.
  void insert(std::uint32_t page, std::span<const std::uint32_t> checksums);

  /// The batch that has `page` as a data page; null if there is none.
  const PageBatch* find(std::uint64_t page) const;
  /// Requires: a data page.
  std::uint32_t checksum(std::uint64_t page) const { return checksums_[page]; }
  std::span<const PageBatch> batches() const { return batches_; }
  std::uint32_t end() const { return batches_.empty() ? 0 : batches_.back().end(); }

 private:
  std::vector<PageBatch> batches_;
  std::vector<std::uint32_t> checksums_;  // by page number
};

/// What a walk over the checksum pages found.
struct SegmentWalk {
  SegmentTable table;
  std::uint64_t synced_pages = 0;  ///< highest that a valid checksum page claims
};

enum class WalkEnd {
  kFile,  ///< a damaged checksum page costs its batch: the walk goes on behind it, up to the file's
          ///< end
  kTear,  ///< it ends the walk, unless a later valid one says that it was on stable storage before
};

/// Reads the checksum pages of the first `page_count` pages of a file. Errors: kIo, kNewerFormat.
Result<SegmentWalk> walk_segment(File& file, std::uint64_t volume_tag, SegmentId id,
                                 std::uint64_t page_count, WalkEnd end);

/// Where the valid batches of a segment end that was open when its writer died, in pages. What was
/// on stable storage stays, whatever its state is; the rest up to the first batch that is not
/// whole. Errors: kIo, kNewerFormat.
Result<std::uint64_t> find_valid_end(File& file, std::uint64_t volume_tag, SegmentId id,
                                     std::uint64_t page_count, std::uint64_t durable_pages);

/// Reads and verifies the data pages of `batch`; returns the bad ones. `progress` gets the bytes of
/// each step. Errors: kIo.
Result<std::vector<PageRange>> find_bad_pages(File& file, std::uint64_t volume_tag, SegmentId id,
                                              const SegmentTable& table, const PageBatch& batch,
                                              const std::function<void(std::uint64_t)>& progress);

}  // namespace kvsyncfs
