#include "engine/store/replica_writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvsyncfs {
namespace {

/// The checksums of a batch that belongs at `identity` and is whole. Errors: kCorrupt,
/// kNewerFormat.
Result<std::vector<std::uint32_t>> verify_batch(PageIdentity identity, Bytes batch) {
  if (batch.size() % kPageSize != 0 || batch.size() < 2 * kPageSize)
    return Error(Code::kCorrupt, fmt::format("batch of {} bytes", batch.size()));
  const Bytes head = batch.first(kPageSize);
  KVSYNCFS_ASSIGN(const SegmentBatch decoded, decode_checksum_page(identity, head));
  std::vector<std::uint32_t> checksums(decoded.page_count);
  copy_checksums(head, checksums);
  bool good = batch.size() == (decoded.page_count + std::size_t{1}) * kPageSize;
  for (std::size_t i = 0; good && i < checksums.size(); ++i) {
    ++identity.page;
    good = page_checksum(identity, batch.subspan((i + 1) * kPageSize, kPageSize)) == checksums[i];
  }
  if (!good)
    return Error(Code::kCorrupt, fmt::format("segment {} page {}: batch is not whole",
                                             identity.segment.value, identity.page));
  return checksums;
}

}  // namespace

ReplicaWriter::ReplicaWriter(Disk& disk, const StoreOptions& options, SegmentIndex& index,
                             Space& space, Syncer& syncer, StoreCounts& counts)
    : disk_(disk),
      options_(options),
      index_(index),
      space_(space),
      syncer_(syncer),
      counts_(counts) {}

Status ReplicaWriter::write(SegmentId id, std::uint64_t page, Bytes batch) {
  const std::uint64_t end = page + batch.size() / kPageSize;
  if (end < page || end > options_.segment_size_bytes / kPageSize)
    return Error(Code::kInvalid,
                 fmt::format("segment {} page {}: beyond the segment", id.value, page));
  KVSYNCFS_ASSIGN(const auto checksums, verify_batch({options_.volume_tag, id, page}, batch));
  KVSYNCFS_ASSIGN(const ReplicaPtr replica, find_or_make(id));
  {
    std::lock_guard lock(replica->mutex);
    KVSYNCFS_TRY(append(*replica, page, batch, checksums));
  }
  return syncer_.sync();
}

/// What was good in the batch is written over with the same bytes: a crash in between leaves
/// nothing worse than it was.
Status ReplicaWriter::mend(SegmentId id, std::uint64_t page, Bytes batch) {
  SegmentIndex::Info info;
  if (!index_.info(id, info)) return Error(Code::kNotFound, fmt::format("segment {}", id.value));
  const std::uint64_t end = page + batch.size() / kPageSize;
  if (end < page || end > info.file_bytes / kPageSize)
    return Error(Code::kInvalid,
                 fmt::format("segment {} page {}: beyond the segment", id.value, page));
  KVSYNCFS_ASSIGN(const auto checksums, verify_batch({options_.volume_tag, id, page}, batch));
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  if (segment->is_written())
    return Error(Code::kStale, fmt::format("segment {} is being written", id.value));
  const bool has_table = segment->has_batch(page, checksums);
  for (std::uint64_t at = page; !has_table && at < end; ++at)
    if (segment->find_batch(at))
      return Error(Code::kStale, fmt::format("segment {} page {}: another batch", id.value, at));
  KVSYNCFS_TRY(segment->file().write_at(page * kPageSize, batch));
  KVSYNCFS_TRY(segment->file().sync());
  if (!has_table) segment->insert_batch(static_cast<std::uint32_t>(page), checksums);
  return {};
}

/// Who reads by a descriptor of the lost file goes on reading that one.
Status ReplicaWriter::make_anew(SegmentId id, std::uint64_t length) {
  if (length == 0 || length % kPageSize != 0 || length > options_.segment_size_bytes)
    return Error(Code::kInvalid, fmt::format("segment {} of {} bytes", id.value, length));
  const std::string path = segment_path(options_.directory, id);
  std::lock_guard lock(mutex_);
  KVSYNCFS_ASSIGN(const bool is_there, disk_.exists(path));
  if (is_there) return Error(Code::kExists, path);
  if (const auto lost = index_.pin(id); lost && (*lost)->is_written())
    return Error(Code::kStale, fmt::format("segment {} is being written", id.value));
  if (const auto lost = index_.take(id); lost.found) space_.resize_segment(lost.file_bytes, 0);
  KVSYNCFS_TRY(space_.make_file(path));
  const Status cut = [&]() -> Status {
    KVSYNCFS_ASSIGN(const auto file, disk_.open(path, OpenMode::kReadWrite, true));
    KVSYNCFS_TRY(file->truncate(length));
    KVSYNCFS_TRY(file->sync());
    return disk_.sync_directory(options_.directory);
  }();
  if (!cut) {
    static_cast<void>(space_.retire(path, options_.segment_size_bytes, false));
    return cut;
  }
  space_.resize_segment(options_.segment_size_bytes, length);
  index_.add(id, length);
  index_.set_info(id, {length, length});
  return {};
}

Status ReplicaWriter::append(Replica& replica, std::uint64_t page, Bytes batch,
                             std::span<const std::uint32_t> checksums) {
  Segment& segment = *replica.segment;
  if (page < replica.next_page && segment.has_batch(page, checksums)) return {};  // sent again
  if (page != replica.next_page)
    return Error(Code::kStale, fmt::format("segment {}: page {} does not follow {}",
                                           segment.id().value, page, replica.next_page));
  KVSYNCFS_TRY(segment.file().write_at(page * kPageSize, batch));
  segment.add_batch(static_cast<std::uint32_t>(page), checksums);
  syncer_.wrote(replica.segment);
  replica.next_page = page + batch.size() / kPageSize;
  counts_.copied_bytes.fetch_add(batch.size(), std::memory_order_relaxed);
  return {};
}

Result<ReplicaWriter::ReplicaPtr> ReplicaWriter::find_or_make(SegmentId id) {
  std::lock_guard lock(mutex_);
  if (const auto found = replicas_.find(id); found != replicas_.end()) return found->second;
  SegmentIndex::Info info;
  if (index_.info(id, info))
    return Error(Code::kStale, fmt::format("segment {} is not written here any more", id.value));
  const std::string path = segment_path(options_.directory, id);
  KVSYNCFS_TRY(space_.make_file(path));
  auto file = disk_.open(path, OpenMode::kReadWrite, true);
  if (!file) {
    static_cast<void>(space_.retire(path, options_.segment_size_bytes, false));
    return file.error();
  }
  syncer_.changed_directory();
  auto replica = std::make_shared<Replica>();
  replica->segment = index_.add_open(id, options_.segment_size_bytes, std::move(*file));
  replicas_.emplace(id, replica);
  return replica;
}

Status ReplicaWriter::seal(SegmentId id, std::uint64_t length) {
  SegmentIndex::Info info;
  if (!index_.info(id, info)) {
    if (length == 0) return {};
    return Error(Code::kNotFound, fmt::format("segment {}: no copy here to seal", id.value));
  }
  info.expected_bytes = length;
  ReplicaPtr replica;
  {
    std::lock_guard lock(mutex_);
    if (auto node = replicas_.extract(id); !node.empty()) replica = std::move(node.mapped());
  }
  KVSYNCFS_ASSIGN(const SegmentPtr segment,
                  replica ? Result<SegmentPtr>(replica->segment) : index_.pin(id));
  if (info.file_bytes > length) {
    KVSYNCFS_TRY(segment->file().truncate(length));
    space_.resize_segment(info.file_bytes, length);
    info.file_bytes = length;
  }
  index_.set_info(id, info);
  if (replica) index_.release(segment);
  return {};
}

void ReplicaWriter::forget(SegmentId id) {
  std::lock_guard lock(mutex_);
  replicas_.erase(id);
}

}  // namespace kvsyncfs
