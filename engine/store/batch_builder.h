// Lays runs of bytes out as one batch: the checksum page and the data pages, as pieces for one
// direct write. Whole pages in aligned memory are borrowed, the rest is packed into pages of its
// own. Thread: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/store/segment_store.h"

namespace kvsyncfs {

/// How far the runs of an append are written.
class RunCursor {
 public:
  explicit RunCursor(std::span<const Bytes> runs) : runs_(runs) { skip_empty(); }
  bool done() const { return run_ == runs_.size(); }
  std::size_t run() const { return run_; }
  std::size_t offset() const { return offset_; }
  /// What is left of the current run. Requires !done().
  Bytes rest() const { return runs_[run_].subspan(offset_); }
  void advance(std::size_t size) {
    offset_ += size;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!done() && offset_ == runs_[run_].size()) {
      ++run_;
      offset_ = 0;
    }
  }
  std::span<const Bytes> runs_;
  std::size_t run_ = 0, offset_ = 0;
};

class BatchBuilder {
 public:
  explicit BatchBuilder(std::uint64_t volume_tag)
      : volume_tag_(volume_tag), checksum_page_(kPageSize) {}

  /// Takes up to `page_count_max` pages from `cursor` for a batch whose checksum page is `page` of
  /// the segment, and adds where the parts come to lie. Requires !cursor.done().
  void build(RunCursor& cursor, SegmentId segment, std::uint64_t page, std::uint64_t synced_pages,
             std::uint32_t page_count_max, std::vector<Placed>& placed);

  /// Of the last build; borrowed from the runs and from here.
  std::span<const Bytes> pieces() const { return pieces_; }
  std::span<const std::uint32_t> checksums() const { return checksums_; }
  std::uint64_t data_bytes() const { return data_bytes_; }  ///< without padding

 private:
  /// The next data page, which will lie at `offset` of the segment.
  Bytes next_page(RunCursor& cursor, SegmentId segment, std::uint64_t offset,
                  std::vector<Placed>& placed);
  void place(RunCursor& cursor, SegmentId segment, std::uint64_t offset, std::size_t size,
             std::vector<Placed>& placed);
  void add_piece(Bytes page);

  const std::uint64_t volume_tag_;
  AlignedBuffer checksum_page_;
  AlignedBuffer staging_;  // for a whole batch, once it is needed
  std::size_t staged_pages_ = 0;
  std::vector<Bytes> pieces_;
  std::vector<std::uint32_t> checksums_;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace kvsyncfs
