// fsck of extents, of the reverse index and of the segments that they lie in.
#include <algorithm>

#include "engine/catalog/check.h"

namespace kvsyncfs {

namespace {

bool overlap(const Extent& a, const Extent& b) {
  return a.file_offset < b.file_end() && b.file_offset < a.file_end();
}

bool ends_inside(const Extent& extent, std::uint64_t length) {
  return extent.segment_offset <= length && extent.length <= length - extent.segment_offset;
}

}  // namespace

/// A record that does not decode is made anew for a file that is there, open: opening the store
/// seals it where its batches end.
void CatalogCheck::visit_segment(std::string_view key, std::string_view value) {
  const SegmentId id{number_in_key(key, 0)};
  const auto record = decode_segment(value);
  if (record && key.size() == kKeyPrefixSize) {
    segments_[id].record = *record;
    return;
  }
  problem(Mends::kYes, Of::kSegment, id.value, "record does not decode");
  mending_.erase(key);
  if (key.size() == kKeyPrefixSize && options_.segment_file(id)) segments_[id].changed = true;
}

/// Of an extent. A file without a record gets one, as visit_segment says.
CatalogCheck::FoundSegment* CatalogCheck::find_segment(SegmentId id) {
  const auto found = segments_.find(id);
  if (found != segments_.end()) return &found->second;
  const Position next{tables_.cursor().applied.value + 1};
  if (id.value >= id_at(next, 0) || !options_.segment_file(id)) return nullptr;
  problem(Mends::kYes, Of::kSegment, id.value, "has extents and a file, but no record");
  FoundSegment& made = segments_[id];
  made.changed = true;
  return &made;
}

Status CatalogCheck::visit_extent(std::string_view key, std::string_view value) {
  const InodeId id{number_in_key(key, 0)};
  if (key.size() != extent_key(id, 0).view().size()) {
    problem(Mends::kYes, Of::kInode, id.value, "an extent's key has {} bytes", key.size());
    mending_.erase(key);
    return {};
  }
  Found& found = inodes_[id];
  const auto extent = decode_extent(key, value);
  if (!extent) {
    bad_extents_.insert({id, number_in_key(key, 1)});
    return {};
  }
  if (id == last_inode_ && extent->file_offset < last_end_)
    problem(Mends::kNo, Of::kInode, id.value, "extents overlap at {}", extent->file_offset);
  last_inode_ = id;
  last_end_ = extent->file_end();
  if (extent->segment == kNoSegment) {
    reserved_found_ += extent->length;
  } else {
    KVSYNCFS_TRY(check_target(id, *extent));
  }
  account(found, *extent, true);
  return {};
}

void CatalogCheck::account(Found& found, const Extent& extent, bool plus) {
  const std::uint64_t change = plus ? extent.length : -extent.length;
  found.extent_bytes += change;
  if (extent.segment == kNoSegment) {
    reserved_bytes_ += change;
    return;
  }
  if (plus) found.data_end = std::max(found.data_end, extent.file_end());
  const auto segment = segments_.find(extent.segment);
  if (segment != segments_.end()) segment->second.live_bytes += change;
}

Status CatalogCheck::check_target(InodeId id, const Extent& extent) {
  const Key key = reverse_key(id, extent);
  KVSYNCFS_ASSIGN(const auto reverse, tables_.get(key.view()));
  if (!reverse || *reverse != encode_length(extent.length)) {
    problem(Mends::kYes, Of::kInode, id.value, "extent at {} has no reverse record",
            extent.file_offset);
    mending_.put(key.view(), encode_length(extent.length));
  }
  FoundSegment* segment = find_segment(extent.segment);
  if (segment == nullptr) {
    problem(Mends::kNo, Of::kInode, id.value,
            "bytes {} to {} lie in segment {} that does not exist", extent.file_offset,
            extent.file_end() - 1, extent.segment.value);
    return {};
  }
  SegmentRecord& record = segment->record;
  if (record.state != SegmentState::kSealed || ends_inside(extent, record.length)) return {};
  const auto bytes = options_.segment_file(extent.segment);
  const bool in_file = bytes && ends_inside(extent, *bytes);
  problem(in_file ? Mends::kYes : Mends::kNo, Of::kInode, id.value,
          "bytes {} to {} lie past the end of segment {}", extent.file_offset,
          extent.file_end() - 1, extent.segment.value);
  if (in_file) {
    record.state = SegmentState::kOpen;
    record.length = 0;
    segment->changed = true;
  }
  return {};
}

Status CatalogCheck::visit_reverse(std::string_view key, std::string_view value) {
  const SegmentId segment{number_in_key(key, 0)};
  const InodeId id{number_in_key(key, 2)};
  const auto length = decode_length(value);
  const Extent wanted{number_in_key(key, 3), length ? *length : 0, segment, number_in_key(key, 1)};
  const bool whole_key = key.size() == reverse_key(id, wanted).view().size();
  const Key at = extent_key(id, wanted.file_offset);
  KVSYNCFS_ASSIGN(const auto found, tables_.get(at.view()));
  const auto extent = found ? decode_extent(at.view(), *found) : Result<Extent>(Code::kNotFound);
  // What differs in the length only is written anew with its extent.
  if (whole_key && extent && reverse_key(id, *extent).view() == key) return {};
  if (whole_key && length && decode_extent(at.view(), encode_extent(wanted))) {
    if (found && !extent) {
      reverse_of_bad_[{id, wanted.file_offset}].push_back(wanted);
      return {};
    }
    if (!found) {
      lost_extents_[id].push_back(wanted);
      return {};
    }
  }
  problem(Mends::kYes, Of::kSegment, segment.value,
          "reverse record at {} names no extent of inode {}", wanted.segment_offset, id.value);
  mending_.erase(key);
  return {};
}

/// An extent that does not decode is known from the reverse index if that speaks of it once. It is
/// not dropped: where bytes were a hole would read as zeros.
void CatalogCheck::settle_bad_extents() {
  for (auto it = bad_extents_.begin(); it != bad_extents_.end();) {
    const auto& [id, offset] = *it;
    Found* found = find(id);
    const std::vector<Extent>& known = reverse_of_bad_[*it];
    const bool gone = found == nullptr || !is_regular(*found) || is_true_orphan(*found);
    const bool restores = !gone && known.size() == 1 && find_segment(known[0].segment) != nullptr;
    problem(gone || restores ? Mends::kYes : Mends::kNo, Of::kInode, id.value,
            "the extent at {} does not decode", offset);
    if (restores) {
      mending_.put_extent(id, known[0]);
      account(*found, known[0], true);
    } else if (gone) {
      mending_.erase(extent_key(id, offset).view());
      for (const Extent& extent : known) mending_.erase(reverse_key(id, extent).view());
    }
    it = gone || restores ? bad_extents_.erase(it) : std::next(it);
  }
}

/// Extents that only the reverse index knows come back if with them, and only with them, the file
/// holds the bytes that it says; else these records are left-overs.
Status CatalogCheck::settle_lost_extents() {
  for (auto& [id, lost] : lost_extents_) {
    std::sort(lost.begin(), lost.end());
    Found* found = find(id);
    bool restores = false;
    if (found != nullptr && is_regular(*found)) {
      KVSYNCFS_ASSIGN(restores, fits(id, *found, lost));
    }
    for (const Extent& extent : lost) {
      if (restores) {
        problem(Mends::kYes, Of::kInode, id.value, "the extent at {} is in the reverse index only",
                extent.file_offset);
        mending_.put_extent(id, extent);
        account(*found, extent, true);
      } else {
        problem(Mends::kYes, Of::kSegment, extent.segment.value,
                "reverse record at {} names no extent of inode {}", extent.segment_offset,
                id.value);
        mending_.erase(reverse_key(id, extent).view());
      }
    }
  }
  return {};
}

Result<bool> CatalogCheck::fits(InodeId id, const Found& found,
                                std::span<const Extent> lost) const {
  std::uint64_t bytes = found.extent_bytes;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    bytes += lost[i].length;
    const auto segment = segments_.find(lost[i].segment);
    if (segment == segments_.end()) return false;
    const SegmentRecord& record = segment->second.record;
    if (record.state == SegmentState::kSealed && !ends_inside(lost[i], record.length)) return false;
    if (lost[i].file_end() > found.size || (i > 0 && overlap(lost[i - 1], lost[i]))) return false;
    const auto there = tables_.extents(id, lost[i].file_offset, lost[i].length, 1);
    if (!there && there.error().code == Code::kIo) return there.error();
    if (!there || !there->empty()) return false;
  }
  return bytes == found.allocated_bytes;
}

void CatalogCheck::settle_segments() {
  for (const auto& [id, found] : segments_) {
    if (found.record.live_bytes != found.live_bytes && !found.changed)
      problem(Mends::kYes, Of::kSegment, id.value, "{} bytes are live, not {}", found.live_bytes,
              found.record.live_bytes);
    if (!found.changed && tables_.segment(id) != found.record)
      problem(Mends::kNo, Of::kSegment, id.value, "memory and disk differ");
    if (!found.changed && found.record.live_bytes == found.live_bytes) continue;
    SegmentRecord record = found.record;
    record.live_bytes = found.live_bytes;
    mending_.put_segment(id, record);
  }
}

}  // namespace kvsyncfs
