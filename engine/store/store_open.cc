// Making, opening and taking over a store's folder of segments.
#include <unordered_map>

#include "engine/store/store_impl.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSegmentSizeMin = 8 * kPageSize;

Status check(const StoreOptions& options) {
  const std::uint64_t size = options.segment_size_bytes;
  if (size % kPageSize != 0 || size < kSegmentSizeMin || size / kPageSize > UINT32_MAX)
    return Error(Code::kInvalid, "segment size " + std::to_string(size));
  return {};
}

}  // namespace

Status SegmentStore::format(Disk& disk, const StoreOptions& options) {
  KVSYNCFS_TRY(check(options));
  return disk.make_directory(options.directory);
}

Result<std::unique_ptr<SegmentStore>> SegmentStore::open(Disk& disk, StoreOptions options) {
  KVSYNCFS_TRY(check(options));
  auto store = std::make_unique<SegmentStoreImpl>(disk, std::move(options));
  KVSYNCFS_TRY(store->scan());
  return std::unique_ptr<SegmentStore>(std::move(store));
}

SegmentStoreImpl::SegmentStoreImpl(Disk& disk, StoreOptions options)
    : disk_(disk),
      options_(std::move(options)),
      space_(disk, options_),
      index_(disk, options_.directory, options_.volume_tag, options_.open_files_max,
             options_.read_only ? OpenMode::kRead : OpenMode::kReadWrite, counts_),
      syncer_(disk, options_.directory),
      user_(Stream::kUser, disk, options_, index_, space_, syncer_, counts_),
      cleaner_(Stream::kCleaner, disk, options_, index_, space_, syncer_, counts_),
      replicas_(disk, options_, index_, space_, syncer_, counts_) {}

Status SegmentStoreImpl::scan() {
  KVSYNCFS_ASSIGN(const auto names, disk_.list(options_.directory));
  for (const std::string& name : names) {
    if (const SegmentId id = parse_segment_name(name); id != kNoSegment) {
      KVSYNCFS_ASSIGN(const std::uint64_t bytes, disk_.size_of(options_.directory + "/" + name));
      index_.add(id, bytes);
      space_.resize_segment(0, bytes);
    } else if (!options_.read_only && Space::is_spare_name(name)) {
      // It may hold batches of a segment that the log has lost, and whose id comes again.
      KVSYNCFS_TRY(disk_.remove(options_.directory + "/" + name));
    }
  }
  return {};
}

Status SegmentStoreImpl::adopt(std::span<const KnownSegment> known) {
  std::unordered_map<SegmentId, bool> is_known;
  for (const KnownSegment& segment : known) is_known[segment.id] = true;
  for (const auto& [id, info] : index_.list()) {
    if (is_known.contains(id)) continue;
    if (options_.read_only) {
      index_.take(id);
      continue;
    }
    // Not kept as a spare: the log has lost this segment, and its id may come again.
    KVSYNCFS_TRY(
        space_.retire(segment_path(options_.directory, id), index_.take(id).file_bytes, false));
  }
  for (const KnownSegment& segment : known)
    KVSYNCFS_TRY(segment.sealed ? adopt_sealed(segment) : adopt_open(segment));
  return {};
}

Status SegmentStoreImpl::adopt_sealed(const KnownSegment& known) {
  SegmentIndex::Info info;
  // A lost file is for its readers to tell.
  if (!index_.info(known.id, info)) return {};
  info.expected_bytes = known.length;
  index_.set_info(known.id, info);
  if (info.file_bytes <= known.length || options_.read_only) return {};
  KVSYNCFS_ASSIGN(auto file,
                  disk_.open(segment_path(options_.directory, known.id), OpenMode::kReadWrite));
  return cut(known.id, *file, known.length);
}

Status SegmentStoreImpl::adopt_open(const KnownSegment& known) {
  const SegmentId id = known.id;
  if (known.is_replica) return {};  // its owner, or who takes its place, seals it
  SegmentIndex::Info info;
  if (!index_.info(id, info)) {
    // Where others have copies and some of it is referenced this store is an old one: a seal would
    // cut what they have. Else the name of its file was not durable yet.
    const bool is_elsewhere = options_.ship && known.length != 0;
    return options_.read_only || is_elsewhere ? Status{} : options_.seal_segment(id, 0);
  }
  KVSYNCFS_ASSIGN(const SegmentPtr segment, index_.pin(id));
  KVSYNCFS_ASSIGN(
      const std::uint64_t pages,
      find_valid_end(segment->file(), options_.volume_tag, id, info.file_bytes / kPageSize,
                     round_up(known.length, kPageSize) / kPageSize));
  info.expected_bytes = options_.ship ? segment->batch_end(known.length) : pages * kPageSize;
  index_.set_info(id, info);
  if (options_.read_only) return {};
  // The former life may not have synced all of it; the seal must not become durable first.
  syncer_.wrote(segment);
  syncer_.changed_directory();
  KVSYNCFS_TRY(options_.seal_segment(id, info.expected_bytes));
  return cut(id, segment->file(), info.expected_bytes);
}

Status SegmentStoreImpl::cut(SegmentId id, File& file, std::uint64_t length) {
  SegmentIndex::Info info;
  if (!index_.info(id, info) || info.file_bytes <= length) return {};
  KVSYNCFS_TRY(file.truncate(length));
  space_.resize_segment(info.file_bytes, length);
  info.file_bytes = length;
  index_.set_info(id, info);
  return {};
}

}  // namespace kvsyncfs
