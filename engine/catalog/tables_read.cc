#include <algorithm>

#include "engine/catalog/rocks_env.h"
#include "engine/catalog/tables.h"

namespace kvsyncfs {

Result<std::optional<std::string>> Tables::get(std::string_view key) const {
  std::string value;
  rocksdb::Status found = db_->Get(rocksdb::ReadOptions(), key, &value);
  if (found.IsNotFound()) return std::optional<std::string>{};
  if (!found.ok()) return from_rocks(found);
  return std::optional<std::string>(std::move(value));
}

Result<Inode> Tables::inode(InodeId id) const {
  Inode cached;
  if (inode_cache_.find(id, cached)) return cached;
  InodeCache::Ticket ticket = inode_cache_.ticket();
  {
    std::shared_lock lock(memory_mutex_);
    auto deferred = deferred_inodes_.find(id);
    if (deferred != deferred_inodes_.end()) return deferred->second;
  }
  KVSYNCFS_ASSIGN(auto bytes, get(inode_key(id).view()));
  if (!bytes) return Code::kNotFound;
  KVSYNCFS_ASSIGN(Inode inode, decode_inode(*bytes));
  inode_cache_.add(id, inode, ticket);
  return inode;
}

Result<std::optional<Dentry>> Tables::dentry(InodeId parent, std::string_view name) const {
  if (name.size() > kNameSizeMax) return Code::kNameTooLong;
  Key key = dentry_key(parent, name);
  KVSYNCFS_ASSIGN(auto bytes, get(key.view()));
  if (!bytes) return std::optional<Dentry>{};
  KVSYNCFS_ASSIGN(Dentry dentry, decode_dentry(key.view(), *bytes));
  return std::optional<Dentry>(std::move(dentry));
}

Result<std::vector<Dentry>> Tables::list(InodeId parent, std::uint64_t after,
                                         std::size_t count_max) const {
  std::vector<Dentry> entries;
  if (after == UINT64_MAX) return entries;
  KVSYNCFS_ASSIGN(auto it, iterators_->take());
  for (it->Seek(cookie_key(parent, after + 1).view()); it->Valid() && entries.size() < count_max;
       it->Next()) {
    KVSYNCFS_ASSIGN(Dentry entry, decode_listing(it.key(), it.value()));
    entries.push_back(std::move(entry));
  }
  if (!it->status().ok()) return from_rocks(it->status());
  return entries;
}

Result<std::optional<std::string>> Tables::xattr(InodeId id, std::string_view name) const {
  if (name.size() > kNameSizeMax) return Code::kRange;
  KVSYNCFS_ASSIGN(auto bytes, get(xattr_key(id, name).view()));
  if (!bytes) return std::optional<std::string>{};
  KVSYNCFS_ASSIGN(std::string_view value, decode_xattr(*bytes));
  return std::optional<std::string>(value);
}

Result<std::vector<std::string>> Tables::xattr_names(InodeId id) const {
  std::vector<std::string> names;
  KVSYNCFS_ASSIGN(auto it, iterators_->take());
  for (it->Seek(xattr_key(id, "").view()); it->Valid(); it->Next())
    names.emplace_back(name_in_key(it.key()));
  if (!it->status().ok()) return from_rocks(it->status());
  return names;
}

Result<std::vector<Extent>> Tables::extents(InodeId id, std::uint64_t offset, std::uint64_t length,
                                            std::size_t count_max) const {
  std::vector<Extent> found;
  if (length == 0 || count_max == 0 || offset > kFileSizeMax) return found;
  const std::uint64_t end = offset + std::min(length, kFileSizeMax - offset + 1);
  // Mostly pages are asked for as they were written: one lookup is cheaper than two seeks.
  KVSYNCFS_ASSIGN(auto exact, get(extent_key(id, offset).view()));
  if (exact) {
    KVSYNCFS_ASSIGN(Extent e, decode_extent(extent_key(id, offset).view(), *exact));
    if (e.file_end() >= end) return std::vector<Extent>{e};
  }
  KVSYNCFS_ASSIGN(auto it, iterators_->take());
  it->SeekForPrev(extent_key(id, offset).view());
  if (it->Valid()) {
    KVSYNCFS_ASSIGN(Extent before, decode_extent(it.key(), it.value()));
    if (before.file_end() > offset) found.push_back(before);
  }
  const bool covered = !found.empty() && found.back().file_end() >= end;
  if (!covered) {
    for (it->Seek(extent_key(id, offset + 1).view()); it->Valid() && found.size() < count_max;
         it->Next()) {
      KVSYNCFS_ASSIGN(Extent e, decode_extent(it.key(), it.value()));
      if (e.file_offset >= end) break;
      found.push_back(e);
    }
  }
  if (!it->status().ok()) return from_rocks(it->status());
  return found;
}

Result<std::vector<std::pair<InodeId, Extent>>> Tables::segment_extents(
    SegmentId id, std::uint64_t from_offset, std::size_t count_max) const {
  std::vector<std::pair<InodeId, Extent>> found;
  KVSYNCFS_ASSIGN(auto it, iterators_->take());
  Key from = Key('r').number(id.value).number(from_offset);
  for (it->Seek(from.view()); it->Valid() && found.size() < count_max; it->Next()) {
    KVSYNCFS_ASSIGN(std::uint64_t length, decode_length(it.value()));
    std::string_view key = it.key();
    found.push_back(
        {{number_in_key(key, 2)}, {number_in_key(key, 3), length, id, number_in_key(key, 1)}});
  }
  if (!it->status().ok()) return from_rocks(it->status());
  return found;
}

Result<std::optional<OrphanRecord>> Tables::orphan(InodeId id) const {
  KVSYNCFS_ASSIGN(auto bytes, get(orphan_key(id).view()));
  if (!bytes) return std::optional<OrphanRecord>{};
  KVSYNCFS_ASSIGN(OrphanRecord orphan, decode_orphan(*bytes));
  return std::optional<OrphanRecord>(std::move(orphan));
}

bool Tables::is_held(const OrphanRecord& orphan) const {
  if (orphan.holders.empty()) return false;
  std::shared_lock lock(memory_mutex_);
  return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& known) {
    const auto is_its = [&](const OrphanRecord::Holder& h) {
      return h.session == known.second.session;
    };
    return known.second.lives() &&
           std::any_of(orphan.holders.begin(), orphan.holders.end(), is_its);
  });
}

Result<std::vector<InodeId>> Tables::reclaimable_orphans(std::size_t count_max) const {
  std::vector<InodeId> ids;
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const rocksdb::Slice end("p");
  options.iterate_upper_bound = &end;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek("o"); it->Valid() && ids.size() < count_max; it->Next()) {
    KVSYNCFS_ASSIGN(const OrphanRecord orphan, decode_orphan(it->value().ToStringView()));
    if (!is_held(orphan)) ids.push_back({number_in_key(it->key().ToStringView(), 0)});
  }
  if (!it->status().ok()) return from_rocks(it->status());
  return ids;
}

Result<std::vector<InodeId>> Tables::orphans() const {
  std::vector<InodeId> ids;
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  rocksdb::Slice end("p");
  options.iterate_upper_bound = &end;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek("o"); it->Valid(); it->Next())
    ids.push_back({number_in_key(it->key().ToStringView(), 0)});
  if (!it->status().ok()) return from_rocks(it->status());
  return ids;
}

std::optional<SegmentRecord> Tables::segment(SegmentId id) const {
  std::shared_lock lock(memory_mutex_);
  auto it = segments_.find(id);
  if (it == segments_.end()) return std::nullopt;
  return it->second;
}

std::vector<std::pair<SegmentId, SegmentRecord>> Tables::segments() const {
  std::vector<std::pair<SegmentId, SegmentRecord>> all;
  {
    std::shared_lock lock(memory_mutex_);
    all.assign(segments_.begin(), segments_.end());
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

std::optional<SessionRecord> Tables::session(NodeId node) const {
  std::shared_lock lock(memory_mutex_);
  auto it = sessions_.find(node);
  if (it == sessions_.end()) return std::nullopt;
  return it->second;
}

std::map<NodeId, SessionRecord> Tables::sessions() const {
  std::shared_lock lock(memory_mutex_);
  return sessions_;
}

Holds Tables::holds() const {
  std::shared_lock lock(memory_mutex_);
  return holds_;
}

CatalogTotals Tables::totals() const {
  std::shared_lock lock(memory_mutex_);
  return totals_;
}

Status Tables::scan(std::string_view begin, std::string_view end, const Visit& visit) const {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.fill_cache = false;
  const rocksdb::Slice bound(end);
  if (!end.empty()) options.iterate_upper_bound = &bound;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek(begin); it->Valid(); it->Next())
    KVSYNCFS_TRY(visit(it->key().ToStringView(), it->value().ToStringView()));
  return it->status().ok() ? Status{} : Status(from_rocks(it->status()));
}

std::uint64_t Tables::estimated_records() const {
  std::uint64_t count = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kEstimateNumKeys, &count);
  return count;
}

}  // namespace kvsyncfs
