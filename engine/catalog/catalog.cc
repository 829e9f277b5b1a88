// Making and opening a catalog, its reads, and its checkpoints.
#include "engine/catalog/catalog.h"

#include "engine/base/checksum.h"
#include "engine/catalog/apply.h"
#include "engine/catalog/catalog_impl.h"
#include "engine/format/codec.h"

namespace kvsyncfs {

Status Catalog::format(Disk& disk, const CatalogOptions& options, std::uint32_t uid,
                       std::uint32_t gid, Timestamp time) {
  KVSYNCFS_ASSIGN(auto tables, Tables::open(disk, options, true));
  StagedInode root{kRootInode, {}, StagedInode::State::kChanged};
  root.inode.mode = 0040755;
  root.inode.uid = uid;
  root.inode.gid = gid;
  root.inode.link_count = 2;
  root.inode.change = 1;
  root.inode.atime = root.inode.mtime = root.inode.ctime = root.inode.birth = time;
  root.inode.parent = kRootInode;
  rocksdb::WriteBatch batch;
  KVSYNCFS_TRY(tables->commit(batch, {&root, 1}, {}, Cursor{{0}, 0, 1, 0}));
  KVSYNCFS_TRY(tables->begin_flush());
  return tables->finish_flush([] { return false; });
}

Result<std::unique_ptr<Catalog>> Catalog::open(Disk& disk, const CatalogOptions& options) {
  KVSYNCFS_ASSIGN(auto tables, Tables::open(disk, options, false));
  return std::unique_ptr<Catalog>(std::make_unique<RocksCatalog>(disk, std::move(tables), options));
}

RocksCatalog::RocksCatalog(Disk& disk, std::unique_ptr<Tables> tables,
                           const CatalogOptions& options)
    : disk_(disk),
      options_(options),
      tables_(std::move(tables)),
      read_only_(options.read_only),
      for_check_(options.for_check),
      applied_(tables_->cursor().applied.value),
      begun_(tables_->cursor().applied),
      durable_(tables_->cursor().applied) {}

Result<Dentry> RocksCatalog::lookup(InodeId parent, std::string_view name) const {
  KVSYNCFS_ASSIGN(auto dentry, tables_->dentry(parent, name));
  if (!dentry) return Code::kNotFound;
  return std::move(*dentry);
}

Result<std::vector<Dentry>> RocksCatalog::list(InodeId parent, std::uint64_t after,
                                               std::size_t count_max) const {
  return tables_->list(parent, after, count_max);
}

Result<std::string> RocksCatalog::xattr(InodeId id, std::string_view name) const {
  KVSYNCFS_ASSIGN(auto value, tables_->xattr(id, name));
  if (!value) {
    KVSYNCFS_TRY(check_xattr_name(name));
    return Code::kNoData;
  }
  return std::move(*value);
}

Result<std::vector<Extent>> RocksCatalog::extents(InodeId id, std::uint64_t offset,
                                                  std::uint64_t length,
                                                  std::size_t count_max) const {
  return tables_->extents(id, offset, length, count_max);
}

Result<SegmentRecord> RocksCatalog::segment(SegmentId id) const {
  auto record = tables_->segment(id);
  if (!record) return Code::kNotFound;
  return *record;
}

Result<std::vector<std::pair<InodeId, Extent>>> RocksCatalog::segment_extents(
    SegmentId id, std::uint64_t from_offset, std::size_t count_max) const {
  return tables_->segment_extents(id, from_offset, count_max);
}

Status RocksCatalog::begin_checkpoint() {
  if (failed_) return *failed_;
  // One more memtable for each that is not written would end in a stall of RocksDB.
  if (is_unfinished_) return {};
  begun_ = applied();
  return tables_->begin_flush();
}

Result<Position> RocksCatalog::finish_checkpoint(const std::function<bool()>& gives_up) {
  if (read_only_) return durable_;
  const Status finished = tables_->finish_flush(gives_up);
  is_unfinished_ = !finished && finished.error().code == Code::kTimeout;
  KVSYNCFS_TRY(finished);
  durable_ = begun_;
  return durable_;
}

Result<std::unique_ptr<CatalogSnapshot>> RocksCatalog::snapshot() {
  if (failed_) return *failed_;
  return tables_->snapshot();
}

Status RocksCatalog::reopen(const std::string& directory) {
  CatalogOptions options = options_;
  options.directory = directory;
  KVSYNCFS_ASSIGN(auto tables, Tables::open(disk_, options, false));
  tables_ = std::move(tables);
  options_ = std::move(options);
  begun_ = durable_ = tables_->cursor().applied;
  applied_.store(durable_.value, std::memory_order_release);
  return {};
}

HistoryDigest RocksCatalog::history() const {
  std::lock_guard lock(history_mutex_);
  return history_.empty() ? HistoryDigest{} : history_.back();
}

std::optional<std::uint32_t> RocksCatalog::history_at(Position position) const {
  std::lock_guard lock(history_mutex_);
  for (const HistoryDigest& each : history_)
    if (each.position == position) return each.digest;
  return std::nullopt;
}

Result<std::uint32_t> RocksCatalog::digest() const {
  KVSYNCFS_TRY(tables_->write_deferred());
  std::uint32_t crc = 0;
  KVSYNCFS_TRY(tables_->scan([&](std::string_view key, std::string_view value) -> Status {
    if (key == kCursorKey) return {};
    std::string sizes;  // so that bytes cannot pass from a key to a value unseen
    Writer w(sizes);
    w.u32(static_cast<std::uint32_t>(key.size()));
    w.u32(static_cast<std::uint32_t>(value.size()));
    for (std::string_view part : {std::string_view(sizes), key, value})
      crc = crc32c(as_bytes(part), crc);
    return {};
  }));
  return crc;
}

}  // namespace kvsyncfs
