// One segment file and its table of checksums, open. Reads verify every page that they touch.
// Thread: reads from any thread, at the same time as one writer.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "engine/store/segment_table.h"
#include "engine/store/store_counts.h"

namespace kvsyncfs {

class Segment {
 public:
  Segment(std::uint64_t volume_tag, SegmentId id, std::string path, StoreCounts& counts)
      : volume_tag_(volume_tag), id_(id), path_(std::move(path)), counts_(counts) {}
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Opens the file and reads its table, unless that is done. Errors: kNotFound, kIo, kNewerFormat,
  /// ...
  Status load(Disk& disk, OpenMode mode);
  /// Instead of load: an empty segment in `file`, to be written, of at most `page_count_max` pages.
  void start(std::unique_ptr<File> file, std::uint32_t page_count_max);

  /// A batch was written: reads see it from here on. Thread: the writer.
  void add_batch(std::uint32_t page, std::span<const std::uint32_t> checksums);

  /// A batch was written where none was. Thread: any.
  void insert_batch(std::uint32_t page, std::span<const std::uint32_t> checksums);

  /// Where the batch ends that has the byte before `length`; 0 for 0. Bytes.
  std::uint64_t batch_end(std::uint64_t length) const;

  /// The batch that has the page, its checksum page first.
  std::optional<PageRange> find_batch(std::uint64_t page) const;
  /// The same; without one the page is counted as damaged. Errors: kCorrupt.
  Result<PageRange> batch_of(std::uint64_t page);
  /// Where the first batch begins that begins at the page or behind it.
  std::optional<std::uint64_t> next_batch(std::uint64_t page) const;
  /// Whether a batch is at that checksum page, with these checksums.
  bool has_batch(std::uint64_t page, std::span<const std::uint32_t> checksums) const;

  /// Requires: loaded or started, also below. Errors: kCorrupt, kIo.
  Status read(std::uint64_t offset, MutableBytes out);
  /// The whole batch at that checksum page, verified. Errors: kNotFound, kCorrupt, kIo.
  Result<AlignedBuffer> read_batch(std::uint64_t page);
  /// As SegmentStore's. Errors: kCorrupt, kIo.
  Result<std::size_t> load_pages(std::uint64_t page, MutableBytes out);

  /// From start until it is sealed: nobody evicts it.
  bool is_written() const { return written_.load(std::memory_order_relaxed); }
  void set_sealed() { written_.store(false, std::memory_order_relaxed); }

  SegmentId id() const { return id_; }
  File& file() { return *file_; }
  std::uint64_t end_pages() const;

  /// Pages known to be on stable storage.
  std::uint64_t synced_pages() const { return synced_pages_.load(std::memory_order_relaxed); }
  void set_synced_pages(std::uint64_t pages) {
    synced_pages_.store(pages, std::memory_order_relaxed);
  }

 private:
  Result<std::uint64_t> pages_in_batch_from(std::uint64_t page);
  std::optional<std::vector<std::uint64_t>> heads_from(std::uint64_t page,
                                                       std::uint64_t* end) const;
  Error bad_page(std::uint64_t page, const char* what, std::uint64_t count = 1);
  /// Reads whole pages and verifies them; all are data pages of one batch.
  Status read_pages(std::uint64_t page, MutableBytes out);

  const std::uint64_t volume_tag_;
  const SegmentId id_;
  const std::string path_;
  StoreCounts& counts_;

  std::mutex load_mutex_;
  std::atomic<bool> ready_ = false;
  std::atomic<bool> written_ = false;
  std::unique_ptr<File> file_;             // set once, before ready_
  mutable std::shared_mutex table_mutex_;  // innermost; never held over I/O
  SegmentTable table_;                     // checksums of a batch do not change once it is in
  std::atomic<std::uint64_t> synced_pages_ = 0;
};

using SegmentPtr = std::shared_ptr<Segment>;  // readers outlive eviction and removal

}  // namespace kvsyncfs
