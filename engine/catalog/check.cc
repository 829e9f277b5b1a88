// The pass over all records, and what is then known of each inode.
#include "engine/catalog/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/catalog/catalog_impl.h"
#include "engine/catalog/paths.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kMadeDirectoryMode = 0040700, kMadeFileMode = 0100600, kRootMode = 0040755;

/// Also what the range of a prefix ends before.
std::string after(const Key& key) {
  std::string end(key.view());
  for (std::size_t i = end.size(); i-- > 0;)
    if (++reinterpret_cast<unsigned char&>(end[i]) != 0) break;
  return end;
}

}  // namespace

CatalogCheck::CatalogCheck(const Tables& tables, const CatalogCheckOptions& options,
                           InodeId spare_id)
    : tables_(tables),
      options_(options),
      spare_id_(spare_id),
      mending_(tables),
      total_(tables.estimated_records()) {}

std::uint64_t CatalogCheck::mendable_count() const {
  return static_cast<std::uint64_t>(
      std::count_if(problems_.begin(), problems_.end(),
                    [](const Problem& problem) { return problem.mends == Mends::kYes; }));
}

void CatalogCheck::step() {
  constexpr std::uint64_t kEvery = 4096;
  if (++done_ % kEvery == 0) options_.progress(done_, std::max(total_, done_));
}

/// Segments and inodes first: all other records speak of them.
Status CatalogCheck::run() {
  KVSYNCFS_TRY(tables_.scan("s", "t", [this](std::string_view key, std::string_view value) {
    return visit_segment(key, value), Status{};
  }));
  KVSYNCFS_TRY(tables_.scan("i", "j", [this](std::string_view key, std::string_view value) {
    return visit_inode(key, value), Status{};
  }));
  KVSYNCFS_TRY(tables_.scan([this](std::string_view key, std::string_view value) {
    step();
    return visit(key, value);
  }));
  KVSYNCFS_TRY(settle_missing());
  settle_second_names();
  settle_listings();
  KVSYNCFS_TRY(settle_cycles());
  settle_bad_extents();
  KVSYNCFS_TRY(settle_lost_extents());
  KVSYNCFS_TRY(settle_nameless());
  KVSYNCFS_TRY(settle_inodes());
  settle_segments();
  settle_lock_index();
  settle_totals();
  options_.progress(done_, done_);
  return {};
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
      return visit_orphan(key, value), Status{};
    case 'n':
      return visit_session(key, value), Status{};
    case 'h':
      return visit_hold(key, value), Status{};
    case 'l':
      return visit_locks(key, value), Status{};
    case 'k':
    case 'w':
      return visit_lock_index(key, value), Status{};
    default:
      if (key == kCursorKey || !options_.knows_all_records) return {};
      problem(Mends::kYes, Of::kCatalog, 0, "unknown record of {} bytes", key.size());
      mending_.erase(key);
      return {};
  }
}

CatalogCheck::Found* CatalogCheck::find(InodeId id) {
  auto it = inodes_.find(id);
  return it == inodes_.end() || !it->second.exists ? nullptr : &it->second;
}

void CatalogCheck::visit_inode(std::string_view key, std::string_view value) {
  const InodeId id{number_in_key(key, 0)};
  if (key.size() != kKeyPrefixSize) {
    problem(Mends::kYes, Of::kCatalog, 0, "an inode's key has {} bytes", key.size());
    return mending_.erase(key);
  }
  Found& found = inodes_[id];
  const auto inode = decode_inode(value);
  if (!inode) {
    found.undecodable = true;
    return;
  }
  ++inode_count_;
  found.exists = true;
  found.mode = inode->mode;
  found.link_count = inode->link_count;
  found.size = inode->size;
  found.allocated_bytes = inode->allocated_bytes;
  found.xattr_count = inode->xattr_count;
  found.parent = inode->parent;
  if (is_symlink(*inode) && inode->target.size() != inode->size) {
    problem(Mends::kYes, Of::kInode, id.value, "symlink of {} bytes says size {}",
            inode->target.size(), inode->size);
    found.size = inode->target.size();
    found.changed = true;
  }
}

void CatalogCheck::visit_xattr(std::string_view key, std::string_view value) {
  const InodeId id{number_in_key(key, 0)};
  if (decode_xattr(value) && key.size() > kKeyPrefixSize) {
    ++inodes_[id].xattrs;
    return;
  }
  problem(Mends::kYes, Of::kInode, id.value, "the attribute '{}' does not decode",
          printable(name_in_key(key)));
  mending_.erase(key);
}

void CatalogCheck::visit_orphan(std::string_view key, std::string_view value) {
  if (key.size() == kKeyPrefixSize) {
    const InodeId id{number_in_key(key, 0)};
    inodes_[id].orphan = true;
    if (decode_orphan(value)) return;
    // Without sessions nobody can hold it; else it stays until somebody knows who does.
    problem(has_sessions_ ? Mends::kNo : Mends::kYes, Of::kInode, id.value,
            "is an orphan whose record does not decode");
    if (!has_sessions_) mending_.put(key, encode(OrphanRecord{}));
    return;
  }
  problem(Mends::kYes, Of::kCatalog, 0, "an orphan's key has {} bytes", key.size());
  mending_.erase(key);
}

/// An inode that other records speak of and that has no record gets one where that saves names or
/// bytes; else what speaks of it goes.
Status CatalogCheck::settle_missing() {
  inodes_[kRootInode];
  std::vector<InodeId> ids;
  for (const auto& [id, found] : inodes_)
    if (!found.exists) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const InodeId id : ids) {
    Found& found = inodes_[id];
    const bool directory = id == kRootInode || found.entries > 0;
    const bool file = !directory && found.data_end > 0 && !found.orphan;
    if (directory || file) {
      found.mode = id == kRootInode ? kRootMode : directory ? kMadeDirectoryMode : kMadeFileMode;
      make_record(id, found);
    } else {
      KVSYNCFS_TRY(drop_missing(id, found));
    }
  }
  for (const Named& entry : undecided_) settle_entry(entry.parent, entry.dentry);
  for (auto& [id, found] : inodes_) {
    if (!found.exists || is_regular(found) || found.extent_bytes == 0) continue;
    problem(Mends::kYes, Of::kInode, id.value, "has extents and is no file");
    KVSYNCFS_TRY(drop_extents(id, found));
  }
  return {};
}

void CatalogCheck::make_record(InodeId id, Found& found) {
  problem(Mends::kYes, Of::kInode, id.value, "{}, but {} it",
          found.undecodable ? "record does not decode" : "has no record",
          is_directory(found) ? id == kRootInode ? "the volume needs" : "entries are in"
                              : "extents are of");
  found.exists = found.made = found.changed = true;
  found.size = is_directory(found) ? 0 : found.data_end;
  if (id == kRootInode) found.parent = kRootInode;
}

Status CatalogCheck::drop_missing(InodeId id, Found& found) {
  if (found.undecodable) {
    problem(Mends::kYes, Of::kInode, id.value, "record does not decode");
    mending_.erase(inode_key(id).view());
  }
  if (found.orphan) {
    problem(Mends::kYes, Of::kInode, id.value, "is an orphan and does not exist");
    mending_.erase(orphan_key(id).view());
  }
  if (found.xattrs > 0) {
    problem(Mends::kYes, Of::kInode, id.value, "has an attribute and does not exist");
    const Key first = xattr_key(id, "");
    KVSYNCFS_TRY(tables_.scan(first.view(), after(first), [this](std::string_view key, auto) {
      return mending_.erase(key), Status{};
    }));
  }
  if (found.extent_bytes > 0) {
    problem(Mends::kYes, Of::kInode, id.value, "has an extent and does not exist");
    KVSYNCFS_TRY(drop_extents(id, found));
  }
  return {};
}

Status CatalogCheck::drop_extents(InodeId id, Found& found) {
  const Key first = Key('e').number(id.value);
  return tables_.scan(first.view(), after(first),
                      [&](std::string_view key, std::string_view value) -> Status {
                        const auto extent = decode_extent(key, value);
                        if (!extent || key.size() != extent_key(id, 0).view().size()) return {};
                        account(found, *extent, false);
                        mending_.erase_extent(id, *extent);
                        return {};
                      });
}

Status CatalogCheck::settle_inodes() {
  for (auto& [id, found] : inodes_)
    if (found.exists) KVSYNCFS_TRY(settle_inode(id, found));
  return {};
}

Status CatalogCheck::settle_inode(InodeId id, Found& found) {
  const auto wrong = [&](const std::string& what) {
    if (!found.made) problem(Mends::kYes, Of::kInode, id.value, "{}", what);
    found.changed = true;
  };
  const std::uint64_t named = id == kRootInode ? 1 : found.names;
  std::uint64_t links = named;
  if (is_directory(found)) links = named == 0 ? 0 : 2 + found.subdirectories;
  if (found.link_count != links)
    wrong(fmt::format("link count is {}, not {}", links, found.link_count));
  if (found.orphan && named > 0) {
    wrong("is an orphan with names");
    mending_.erase(orphan_key(id).view());
  }
  if (is_regular(found) && found.data_end > found.size) {
    wrong(fmt::format("an extent ends past the size, at {}", found.data_end));
    found.size = found.data_end;
  }
  // The length of an extent that does not decode is not known, only that it was counted.
  const auto bad = bad_extents_.lower_bound({id, 0});
  const bool has_bad = bad != bad_extents_.end() && bad->first == id;
  if (found.allocated_bytes != found.extent_bytes && !has_bad)
    wrong(fmt::format("extents hold {} bytes, not {}", found.extent_bytes, found.allocated_bytes));
  if (found.xattr_count != found.xattrs)
    wrong(fmt::format("has {} attributes, not {}", found.xattrs, found.xattr_count));
  return found.changed ? write_inode(id, found, links) : Status{};
}

Status CatalogCheck::write_inode(InodeId id, const Found& found, std::uint64_t links) {
  Inode* inode = nullptr;
  if (found.made) {
    inode = &mending_.make(id);
    inode->change = 1;
  } else {
    KVSYNCFS_ASSIGN(inode, mending_.edit(id));
    ++inode->change;
  }
  inode->mode = found.mode;
  inode->link_count = static_cast<std::uint32_t>(std::min<std::uint64_t>(links, kLinkCountMax));
  inode->size = found.size;
  inode->allocated_bytes = found.extent_bytes;
  inode->xattr_count = found.xattrs;
  inode->parent = is_directory(found) ? found.parent : InodeId{};
  return {};
}

void CatalogCheck::settle_totals() {
  const CatalogTotals totals = tables_.totals();
  if (totals.inodes != inode_count_)
    problem(Mends::kYes, Of::kCatalog, 0, "{} inodes exist, not {}", inode_count_, totals.inodes);
  if (totals.reserved_bytes != reserved_found_)
    problem(Mends::kYes, Of::kCatalog, 0, "{} bytes are reserved, not {}", reserved_found_,
            totals.reserved_bytes);
}

Status CatalogCheck::mend(Tables& tables) {
  Cursor cursor = tables.cursor();
  cursor.inodes = static_cast<std::uint64_t>(std::count_if(
      inodes_.begin(), inodes_.end(), [](const auto& known) { return known.second.exists; }));
  cursor.reserved_bytes = reserved_bytes_;
  return mending_.commit(tables, cursor);
}

Status CatalogCheck::tell(bool mended_only) const {
  const auto is_told = [&](const Problem& p) { return !mended_only || p.mends == Mends::kYes; };
  const auto is_inode = [](const Problem& p) {
    return p.of == Of::kInode || p.of == Of::kDirectory;
  };
  std::unordered_set<InodeId> wanted;
  for (const Problem& p : problems_)
    if (is_told(p) && is_inode(p)) wanted.insert({p.number});
  KVSYNCFS_ASSIGN(const auto paths, CatalogPaths::load(tables_, wanted));
  constexpr std::string_view kWords[] = {"inode", "directory", "segment", "catalog"};
  for (const Problem& p : problems_) {
    if (!is_told(p)) continue;
    std::string what(kWords[static_cast<std::size_t>(p.of)]);
    if (p.of != Of::kCatalog) what += fmt::format(" {}", p.number);
    if (const std::string path = is_inode(p) ? paths.of({p.number}) : ""; !path.empty())
      what += fmt::format(" ({})", path);
    options_.report(fmt::format("{}: {}", what, p.text));
  }
  return {};
}

Result<std::uint64_t> RocksCatalog::check(const CatalogCheckOptions& options) const {
  KVSYNCFS_TRY(tables_->write_deferred());
  CatalogCheck check(*tables_, options, {~std::uint64_t{0}});
  KVSYNCFS_TRY(check.run());
  KVSYNCFS_TRY(check.tell(false));
  return check.problem_count();
}

Result<std::uint64_t> RocksCatalog::repair(const CatalogCheckOptions& options) {
  if (failed_) return *failed_;
  KVSYNCFS_TRY(tables_->write_deferred());
  CatalogCheck check(*tables_, options, {id_at(applied(), 0)});
  KVSYNCFS_TRY(check.run());
  if (check.mendable_count() == 0) return std::uint64_t{0};
  KVSYNCFS_TRY(check.mend(*tables_));
  KVSYNCFS_TRY(tables_->write_deferred());
  KVSYNCFS_TRY(check.tell(true));
  return check.mendable_count();
}

Result<std::unordered_map<InodeId, std::string>> RocksCatalog::paths(
    const std::unordered_set<InodeId>& ids) const {
  KVSYNCFS_ASSIGN(const auto known, CatalogPaths::load(*tables_, ids));
  std::unordered_map<InodeId, std::string> paths;
  for (const InodeId id : ids)
    if (std::string path = known.of(id); !path.empty()) paths.emplace(id, std::move(path));
  return paths;
}

}  // namespace kvsyncfs
