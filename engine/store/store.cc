// The running store: what SegmentStore says, by the parts that do it.
#include <fmt/format.h>

#include <algorithm>

#include "engine/store/store_impl.h"

namespace kvsyncfs {

Status SegmentStoreImpl::reserve(std::uint64_t bytes) {
  if (options_.read_only) return Error(Code::kReadOnly, options_.directory);
  return space_.reserve(bytes);
}

Result<std::vector<Placed>> SegmentStoreImpl::append(Stream stream, std::span<const Bytes> runs) {
  if (options_.read_only) return Error(Code::kReadOnly, options_.directory);
  if (stream == Stream::kCleaner) return cleaner_.append(runs);
  auto placed = user_.append(runs);
  // It was reserved: to the caller this is a disk that breaks its word.
  if (!placed && placed.error().code == Code::kNoSpace)
    return Error(Code::kIo, "no space for reserved bytes: " + placed.error().detail);
  return placed;
}

Status SegmentStoreImpl::read(SegmentId id, std::uint64_t offset, MutableBytes out) {
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  return segment->read(offset, out);
}

Result<std::size_t> SegmentStoreImpl::load_pages(SegmentId id, std::uint64_t page,
                                                 MutableBytes out) {
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  return segment->load_pages(page, out);
}

Status SegmentStoreImpl::write_replica(SegmentId id, std::uint64_t page, Bytes batch) {
  if (options_.read_only) return Error(Code::kReadOnly, options_.directory);
  return replicas_.write(id, page, batch);
}

Status SegmentStoreImpl::seal_replica(SegmentId id, std::uint64_t length) {
  return options_.read_only ? Status{} : replicas_.seal(id, length);
}

Result<AlignedBuffer> SegmentStoreImpl::read_batch(SegmentId id, std::uint64_t page) {
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  return segment->read_batch(page);
}

Result<PageRange> SegmentStoreImpl::batch_of(SegmentId id, std::uint64_t page) {
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  return segment->batch_of(page);
}

Result<std::uint64_t> SegmentStoreImpl::next_batch(SegmentId id, std::uint64_t page) {
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  if (const auto next = segment->next_batch(page)) return *next;
  return Error(Code::kNotFound,
               fmt::format("segment {}: no batch from page {} on", id.value, page));
}

Status SegmentStoreImpl::mend_batch(SegmentId id, std::uint64_t page, Bytes batch) {
  if (options_.read_only) return Error(Code::kReadOnly, options_.directory);
  return replicas_.mend(id, page, batch);
}

Status SegmentStoreImpl::make_anew(SegmentId id, std::uint64_t length) {
  if (options_.read_only) return Error(Code::kReadOnly, options_.directory);
  return replicas_.make_anew(id, length);
}

/// A file that was removed behind the store's back serves as long as it is open.
Status SegmentStoreImpl::check_file(SegmentId id) const {
  SegmentIndex::Info info;
  const std::string path = segment_path(options_.directory, id);
  KVSYNCFS_ASSIGN(const bool is_there, disk_.exists(path));
  return is_there && index_.info(id, info) ? Status{} : Status(Error(Code::kNotFound, path));
}

Result<std::uint64_t> SegmentStoreImpl::batch_end(SegmentId id, std::uint64_t length) {
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  return segment->batch_end(length);
}

Status SegmentStoreImpl::finish(SegmentId id) {
  KVSYNCFS_TRY(user_.finish(id));
  return cleaner_.finish(id);
}

std::vector<SegmentId> SegmentStoreImpl::let_go() {
  std::vector<SegmentId> open;
  for (SegmentWriter* writer : {&user_, &cleaner_})
    if (const SegmentId segment = writer->let_go(); segment != kNoSegment) open.push_back(segment);
  return open;
}

Status SegmentStoreImpl::remove(SegmentId id) {
  replicas_.forget(id);
  const SegmentIndex::Taken taken = index_.take(id);
  if (!taken.found) return {};
  return space_.retire(segment_path(options_.directory, id), taken.file_bytes, taken.unused);
}

Result<std::vector<PageRange>> SegmentStoreImpl::scrub(
    SegmentId id, Scrub what, const std::function<void(std::uint64_t bytes)>& progress) {
  SegmentIndex::Info info;
  if (!index_.info(id, info)) return Error(Code::kNotFound, fmt::format("segment {}", id.value));
  // From the file, not from the table in memory: the checksum pages are scrubbed as well.
  KVSYNCFS_ASSIGN(auto file,
                  disk_.open(segment_path(options_.directory, id), OpenMode::kRead, true));
  KVSYNCFS_ASSIGN(std::uint64_t size, file->size());
  if (info.expected_bytes > 0) size = std::min(size, info.expected_bytes);
  KVSYNCFS_ASSIGN(const SegmentWalk walk,
                  walk_segment(*file, options_.volume_tag, id, size / kPageSize, WalkEnd::kFile));
  std::vector<PageRange> bad;
  std::uint64_t next = 0;
  for (const PageBatch& batch : walk.table.batches()) {
    // Pages between batches, whose checksum page is not readable.
    if (batch.page > next) bad.push_back({next, batch.page - next});
    next = batch.end();
    if (what == Scrub::kBatches) continue;
    KVSYNCFS_ASSIGN(const auto here,
                    find_bad_pages(*file, options_.volume_tag, id, walk.table, batch, progress));
    bad.insert(bad.end(), here.begin(), here.end());
  }
  if (const std::uint64_t end = info.expected_bytes / kPageSize; end > next)
    bad.push_back({next, end - next});
  for (const PageRange& range : bad)
    counts_.corrupt_pages.fetch_add(range.count, std::memory_order_relaxed);
  return bad;
}

std::optional<SegmentFile> SegmentStoreImpl::file(SegmentId id) const {
  SegmentIndex::Info info;
  if (!index_.info(id, info)) return std::nullopt;
  return SegmentFile{info.file_bytes, info.expected_bytes};
}

StoreCounters SegmentStoreImpl::counters() const {
  StoreCounters out;
  out.appended_bytes = counts_.appended_bytes.load(std::memory_order_relaxed);
  out.moved_bytes = counts_.moved_bytes.load(std::memory_order_relaxed);
  out.written_bytes = counts_.written_bytes.load(std::memory_order_relaxed);
  out.copied_bytes = counts_.copied_bytes.load(std::memory_order_relaxed);
  out.corrupt_pages = counts_.corrupt_pages.load(std::memory_order_relaxed);
  out.files_bytes = space_.files_bytes();
  out.segment_count = index_.size();
  return out;
}

}  // namespace kvsyncfs
