#include "engine/saved_catalog.h"

#include <algorithm>
#include <utility>

#include "engine/catalog/keys.h"
#include "engine/catalog/snapshot.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kPieceAim = 1u << 20;

/// Passes the records of a saved catalog on, in the order of their keys, save those of segments and
/// of holds: these tell of the volume and not of its names, and the present ones take their place.
class Merge {
 public:
  Merge(CatalogBuilder& builder, const PresentVolume& present)
      : builder_(builder), present_(present) {}

  Status take(std::string_view key, std::string_view value);
  Status finish();
  /// Inodes with extents in segments that are gone, or shorter.
  const std::unordered_set<InodeId>& lost() const { return lost_; }

 private:
  Status note_extent(std::string_view key, std::string_view value);
  Status note_segment(std::string_view key, std::string_view value);
  Status put_before(std::string_view key);
  Status put_holds();
  Status put_segments();
  Status put(std::string_view key, std::string_view value);

  CatalogBuilder& builder_;
  const PresentVolume& present_;
  std::string piece_;
  bool holds_are_out_ = false, segments_are_out_ = false;
  std::map<SegmentId, SegmentRecord> saved_;
  std::map<SegmentId, std::uint64_t> gone_ends_;  ///< what is referred to of those that are gone
  std::unordered_set<InodeId> lost_;
};

Status Merge::put(std::string_view key, std::string_view value) {
  Writer out(piece_);
  out.u32(static_cast<std::uint32_t>(key.size()));
  out.u32(static_cast<std::uint32_t>(value.size()));
  out.raw(key);
  out.raw(value);
  if (piece_.size() < kPieceAim) return {};
  return builder_.add(std::exchange(piece_, {}));
}

Status Merge::put_holds() {
  for (const auto& [name, hold] : present_.holds)
    KVSYNCFS_TRY(put(hold_key(name).view(), encode(hold)));
  return {};
}

/// A segment has moved to other nodes, or was sealed, since; its live bytes are those of the
/// catalog. One that only another saved catalog needs stays, too.
Status Merge::put_segments() {
  std::map<SegmentId, SegmentRecord> all;
  for (const auto& [id, saved] : saved_) {
    const auto now = present_.segments.find(id);
    SegmentRecord record = saved;
    if (now != present_.segments.end()) {
      record = now->second;
      record.live_bytes = saved.live_bytes;
    } else if (record.state == SegmentState::kOpen) {
      record.state = SegmentState::kSealed;  // nobody will come to do that
      record.length = round_up(gone_ends_[id], kPageSize);
    }
    all[id] = record;
  }
  for (const auto& [id, now] : present_.segments) {
    if (all.contains(id) || !is_kept(present_.holds, id)) continue;
    all[id] = now;
    all[id].live_bytes = 0;
  }
  for (const auto& [id, record] : all) KVSYNCFS_TRY(put(segment_key(id).view(), encode(record)));
  return {};
}

Status Merge::put_before(std::string_view key) {
  if (key > "i" && !std::exchange(holds_are_out_, true)) KVSYNCFS_TRY(put_holds());
  if (key > "t" && !std::exchange(segments_are_out_, true)) KVSYNCFS_TRY(put_segments());
  return {};
}

Status Merge::note_extent(std::string_view key, std::string_view value) {
  KVSYNCFS_ASSIGN(const Extent extent, decode_extent(key, value));
  if (extent.segment == kNoSegment) return {};
  const std::uint64_t end = extent.segment_offset + extent.length;
  const auto now = present_.segments.find(extent.segment);
  const bool is_gone = now == present_.segments.end();
  if (!is_gone && (now->second.state == SegmentState::kOpen || end <= now->second.length))
    return {};
  lost_.insert(InodeId{number_in_key(key, 0)});
  if (!is_gone) return {};
  std::uint64_t& known = gone_ends_[extent.segment];
  known = std::max(known, end);
  return {};
}

Status Merge::note_segment(std::string_view key, std::string_view value) {
  KVSYNCFS_ASSIGN(saved_[SegmentId{number_in_key(key, 0)}], decode_segment(value));
  return {};
}

Status Merge::take(std::string_view key, std::string_view value) {
  KVSYNCFS_TRY(put_before(key));
  if (key.starts_with('h')) return {};
  if (key.starts_with('s')) return note_segment(key, value);
  if (key.starts_with('e')) KVSYNCFS_TRY(note_extent(key, value));
  return put(key, value);
}

Status Merge::finish() {
  KVSYNCFS_TRY(put_before("~"));
  return piece_.empty() ? Status{} : builder_.add(std::exchange(piece_, {}));
}

Status take_piece(std::string_view piece, Merge& merge) {
  for (Reader in(piece); in.left() > 0;) {
    const std::uint32_t key_size = in.u32(), value_size = in.u32();
    const std::string_view key = in.raw(key_size), value = in.raw(value_size);
    if (!in.ok()) return Error(Code::kCorrupt, "saved catalog: a record is cut off");
    KVSYNCFS_TRY(merge.take(key, value));
  }
  return {};
}

Status name_lost_files(Disk& disk, CatalogOptions options, const std::unordered_set<InodeId>& lost,
                       RestoredCatalog& restored) {
  restored.lost_files = lost.size();
  if (lost.empty()) return {};
  options.read_only = true;
  KVSYNCFS_ASSIGN(const auto catalog, Catalog::open(disk, options));
  KVSYNCFS_ASSIGN(const auto paths, catalog->paths(lost));
  for (const auto& [inode, path] : paths) restored.lost.push_back(path);
  std::sort(restored.lost.begin(), restored.lost.end());
  return {};
}

}  // namespace

Result<std::unique_ptr<SavedCatalogFile>> SavedCatalogFile::open(Disk& disk,
                                                                 const std::string& path) {
  auto file = disk.open(path, OpenMode::kRead);
  if (!file) return Error(file.error().code, path);
  std::unique_ptr<SavedCatalogFile> saved(new SavedCatalogFile(std::move(*file), path));
  KVSYNCFS_ASSIGN(saved->size_bytes_, saved->file_->size());
  KVSYNCFS_ASSIGN(saved->encoded_header_, saved->read(kCatalogFileHeaderSize));
  auto header = decode_catalog_file_header(saved->encoded_header_);
  if (!header) return Error(header.error().code, path + ": " + header.error().detail);
  saved->header_ = std::move(*header);
  return saved;
}

Result<std::string> SavedCatalogFile::read(std::size_t size) {
  std::string bytes(size, '\0');
  KVSYNCFS_ASSIGN(const std::size_t count,
                  file_->read_at(at_, std::as_writable_bytes(std::span(bytes))));
  bytes.resize(count);
  at_ += count;
  return bytes;
}

Result<std::string> SavedCatalogFile::next_piece() {
  const auto named = [this](const Error& error) {
    return Error(error.code, path_ + ": " + error.detail);
  };
  KVSYNCFS_ASSIGN(const std::string piece_header, read(kCatalogPieceHeaderSize));
  const auto size = catalog_piece_size(piece_header, pieces_);
  if (!size) return named(size.error());
  KVSYNCFS_ASSIGN(std::string records, read(*size));
  if (records.size() < *size) return named(Error(Code::kCorrupt, "saved catalog: cut off"));
  if (!is_catalog_piece(encoded_header_, piece_header, records))
    return named(Error(Code::kCorrupt, "saved catalog: damaged"));
  ++pieces_;
  if (records.empty() && at_ != size_bytes_)
    return named(Error(Code::kCorrupt, "saved catalog: something follows its end"));
  return records;
}

Result<RestoredCatalog> restore_saved_catalog(
    Disk& disk, SavedCatalogFile& saved, const CatalogOptions& into, const PresentVolume& present,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  KVSYNCFS_TRY(remove_catalog(disk, into.directory));
  KVSYNCFS_ASSIGN(const auto builder, CatalogBuilder::make(disk, into));
  Merge merge(*builder, present);
  for (;;) {
    KVSYNCFS_ASSIGN(const std::string piece, saved.next_piece());
    if (piece.empty()) break;
    KVSYNCFS_TRY(take_piece(piece, merge));
    progress(saved.read_bytes(), saved.size_bytes());
  }
  KVSYNCFS_TRY(merge.finish());
  RestoredCatalog restored;
  KVSYNCFS_ASSIGN(restored.position, builder->finish());
  if (restored.position != saved.header().position)
    return Error(Code::kCorrupt, "saved catalog: its records are of another position");
  restored.records = builder->records();
  KVSYNCFS_TRY(name_lost_files(disk, into, merge.lost(), restored));
  return restored;
}

}  // namespace kvsyncfs
