// fsck of the catalog: one pass over all records in key order, then what only the sums can tell.
#include "engine/catalog/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "engine/catalog/catalog_impl.h"

namespace kvsyncfs {

CatalogCheck::CatalogCheck(const Tables& tables, const Report& report, const Progress& progress)
    : tables_(tables), report_(report), progress_(progress), total_(tables.estimated_records()) {}

template <typename... Args>
void CatalogCheck::problem(fmt::format_string<Args...> format, Args&&... args) {
  ++problems_;
  report_(fmt::format(format, std::forward<Args>(args)...));
}

void CatalogCheck::step() {
  constexpr std::uint64_t kEvery = 4096;
  if (++done_ % kEvery == 0) progress_(done_, std::max(total_, done_));
}

/// Inodes and segments first: all other records speak of them.
Result<std::uint64_t> CatalogCheck::run() {
  KVSYNCFS_TRY(tables_.scan([this](std::string_view key, std::string_view value) {
    if (key.starts_with("i")) visit_inode(key, value);
    if (key.starts_with("s")) visit_segment(key, value);
    return Status{};
  }));
  KVSYNCFS_TRY(tables_.scan([this](std::string_view key, std::string_view value) {
    step();
    return visit(key, value);
  }));
  finish_inodes();
  finish_segments();
  finish_totals();
  progress_(done_, done_);
  return problems_;
}

Status CatalogCheck::visit(std::string_view key, std::string_view value) {
  switch (key.empty() ? '\0' : key[0]) {
    case 'i':
    case 's':
      return {};
    case 'd':
      return visit_dentry(key, value);
    case 'c':
      return visit_listing(key, value);
    case 'x':
      return visit_xattr(key, value), Status{};
    case 'e':
      return visit_extent(key, value);
    case 'r':
      return visit_reverse(key, value);
    case 'o':
      return visit_orphan(key), Status{};
    default:
      if (key != kCursorKey) problem("unknown record of {} bytes", key.size());
      return {};
  }
}

CatalogCheck::Found* CatalogCheck::find(InodeId id) {
  auto it = inodes_.find(id);
  return it == inodes_.end() ? nullptr : &it->second;
}

void CatalogCheck::visit_inode(std::string_view key, std::string_view value) {
  InodeId id{number_in_key(key, 0)};
  auto inode = decode_inode(value);
  if (key.size() != kKeyPrefixSize || !inode)
    return problem("inode {}: record does not decode", id.value);
  Found& found = inodes_[id];
  found.mode = inode->mode;
  found.link_count = inode->link_count;
  found.size = inode->size;
  found.allocated_bytes = inode->allocated_bytes;
  found.xattr_count = inode->xattr_count;
  found.parent = inode->parent;
  if (is_symlink(*inode) && inode->target.size() != inode->size)
    problem("inode {}: symlink of {} bytes says size {}", id.value, inode->target.size(),
            inode->size);
}

void CatalogCheck::visit_segment(std::string_view key, std::string_view value) {
  SegmentId id{number_in_key(key, 0)};
  auto record = decode_segment(value);
  if (key.size() != kKeyPrefixSize || !record)
    return problem("segment {}: record does not decode", id.value);
  segments_[id].record = *record;
}

Status CatalogCheck::visit_dentry(std::string_view key, std::string_view value) {
  InodeId parent{number_in_key(key, 0)};
  std::string_view name = name_in_key(key);
  auto dentry = decode_dentry(key, value);
  if (!dentry || name.empty())
    return problem("directory {}: an entry does not decode", parent.value), Status{};
  Found* directory = find(parent);
  if (directory == nullptr || (directory->mode & kTypeMask) != 0040000)
    problem("directory {}: has the entry '{}' and is no directory", parent.value, name);
  KVSYNCFS_ASSIGN(auto listing, tables_.get(cookie_key(parent, dentry->cookie).view()));
  if (!listing || *listing != encode_listing(*dentry))
    problem("directory {}: entry '{}' is not listed", parent.value, name);
  Found* child = find(dentry->inode);
  if (child == nullptr) {
    problem("directory {}: entry '{}' names inode {} that does not exist", parent.value, name,
            dentry->inode.value);
    return {};
  }
  ++child->names;
  if ((child->mode & kTypeMask) != dentry->type)
    problem("directory {}: entry '{}' has another type than inode {}", parent.value, name,
            dentry->inode.value);
  if (dentry->type != 0040000) return {};
  if (directory != nullptr) ++directory->subdirectories;
  if (child->parent != parent)
    problem("inode {}: says its parent is {}, but {} names it", dentry->inode.value,
            child->parent.value, parent.value);
  return {};
}

Status CatalogCheck::visit_listing(std::string_view key, std::string_view value) {
  InodeId parent{number_in_key(key, 0)};
  auto listing = decode_listing(key, value);
  if (!listing) return problem("directory {}: a listing does not decode", parent.value), Status{};
  KVSYNCFS_ASSIGN(auto dentry, tables_.get(dentry_key(parent, listing->name).view()));
  if (!dentry || *dentry != encode_dentry(*listing))
    problem("directory {}: lists '{}', which is no entry", parent.value, listing->name);
  return {};
}

void CatalogCheck::visit_xattr(std::string_view key, std::string_view value) {
  InodeId id{number_in_key(key, 0)};
  Found* found = find(id);
  if (found == nullptr) return problem("inode {}: has an attribute and does not exist", id.value);
  ++found->xattrs;
  if (!decode_xattr(value)) problem("inode {}: an attribute does not decode", id.value);
}

Status CatalogCheck::visit_extent(std::string_view key, std::string_view value) {
  InodeId id{number_in_key(key, 0)};
  auto extent = decode_extent(key, value);
  if (!extent) return problem("inode {}: an extent does not decode", id.value), Status{};
  Found* found = find(id);
  if (found == nullptr || (found->mode & kTypeMask) != 0100000) {
    problem("inode {}: has an extent and is no file", id.value);
  } else {
    found->extent_bytes += extent->length;
    if (extent->segment != kNoSegment && extent->file_end() > found->size)
      problem("inode {}: extent at {} ends past the size", id.value, extent->file_offset);
  }
  if (id == last_inode_ && extent->file_offset < last_end_)
    problem("inode {}: extents overlap at {}", id.value, extent->file_offset);
  last_inode_ = id;
  last_end_ = extent->file_end();
  return check_target(id, *extent);
}

Status CatalogCheck::check_target(InodeId id, const Extent& extent) {
  if (extent.segment == kNoSegment) {
    reserved_bytes_ += extent.length;
    return {};
  }
  KVSYNCFS_ASSIGN(auto reverse, tables_.get(reverse_key(id, extent).view()));
  if (!reverse || *reverse != encode_length(extent.length))
    problem("inode {}: extent at {} has no reverse record", id.value, extent.file_offset);
  auto segment = segments_.find(extent.segment);
  if (segment == segments_.end()) {
    problem("inode {}: extent at {} names segment {} that does not exist", id.value,
            extent.file_offset, extent.segment.value);
    return {};
  }
  segment->second.live_bytes += extent.length;
  const SegmentRecord& record = segment->second.record;
  const bool fits = extent.segment_offset <= record.length &&
                    extent.length <= record.length - extent.segment_offset;
  if (record.state == SegmentState::kSealed && !fits)
    problem("inode {}: extent at {} lies past the end of segment {}", id.value, extent.file_offset,
            extent.segment.value);
  return {};
}

Status CatalogCheck::visit_reverse(std::string_view key, std::string_view value) {
  SegmentId segment{number_in_key(key, 0)};
  InodeId id{number_in_key(key, 2)};
  auto length = decode_length(value);
  if (!length)
    return problem("segment {}: a reverse record does not decode", segment.value), Status{};
  const Extent wanted{number_in_key(key, 3), *length, segment, number_in_key(key, 1)};
  KVSYNCFS_ASSIGN(auto extent, tables_.get(extent_key(id, wanted.file_offset).view()));
  if (!extent || *extent != encode_extent(wanted))
    problem("segment {}: reverse record at {} names no extent of inode {}", segment.value,
            wanted.segment_offset, id.value);
  return {};
}

void CatalogCheck::visit_orphan(std::string_view key) {
  InodeId id{number_in_key(key, 0)};
  Found* found = find(id);
  if (found == nullptr) return problem("inode {}: is an orphan and does not exist", id.value);
  found->orphan = true;
}

void CatalogCheck::finish_inodes() {
  if (find(kRootInode) == nullptr)
    problem("inode {}: the root directory does not exist", kRootInode.value);
  for (auto& [id, found] : inodes_) {
    const bool directory = (found.mode & kTypeMask) == 0040000;
    const std::uint64_t named = id == kRootInode ? found.names + 1 : found.names;
    std::uint64_t links = named;
    if (directory) links = named == 0 ? 0 : 2 + found.subdirectories;
    if (found.link_count != links)
      problem("inode {}: link count is {}, not {}", id.value, links, found.link_count);
    if (directory && named > 1) problem("inode {}: directory with {} names", id.value, named);
    if (found.orphan != (found.link_count == 0))
      problem("inode {}: {}", id.value,
              found.orphan ? "is an orphan with names" : "has no name and is no orphan");
    if (found.allocated_bytes != found.extent_bytes)
      problem("inode {}: extents hold {} bytes, not {}", id.value, found.extent_bytes,
              found.allocated_bytes);
    if (found.xattr_count != found.xattrs)
      problem("inode {}: has {} attributes, not {}", id.value, found.xattrs, found.xattr_count);
    if (directory && found.link_count != 0 && !reaches_root(id))
      problem("inode {}: directory cannot be reached from the root", id.value);
  }
}

/// Follows parents; what was reached before is known, so all walks together visit each directory
/// once.
bool CatalogCheck::reaches_root(InodeId id) {
  std::vector<Found*> path;
  bool reached = false;
  for (InodeId at = id;;) {
    Found* found = find(at);
    if (found == nullptr || found->walk == Walk::kOnPath || found->walk == Walk::kLost) break;
    reached = at == kRootInode || found->walk == Walk::kReached;
    if (reached) break;
    found->walk = Walk::kOnPath;
    path.push_back(found);
    at = found->parent;
  }
  for (Found* found : path) found->walk = reached ? Walk::kReached : Walk::kLost;
  return reached;
}

void CatalogCheck::finish_segments() {
  for (const auto& [id, found] : segments_) {
    if (found.record.live_bytes != found.live_bytes)
      problem("segment {}: {} bytes are live, not {}", id.value, found.live_bytes,
              found.record.live_bytes);
    auto known = tables_.segment(id);
    if (!known || *known != found.record) problem("segment {}: memory and disk differ", id.value);
  }
}

void CatalogCheck::finish_totals() {
  CatalogTotals totals = tables_.totals();
  if (totals.inodes != inodes_.size())
    problem("catalog: {} inodes exist, not {}", inodes_.size(), totals.inodes);
  if (totals.reserved_bytes != reserved_bytes_)
    problem("catalog: {} bytes are reserved, not {}", reserved_bytes_, totals.reserved_bytes);
}

Result<std::uint64_t> RocksCatalog::check(
    const std::function<void(const std::string&)>& report,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) const {
  KVSYNCFS_TRY(tables_->write_deferred());
  return CatalogCheck(*tables_, report, progress).run();
}

}  // namespace kvsyncfs
