#include "engine/catalog/snapshot.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <utility>

#include "engine/catalog/catalog_impl.h"
#include "engine/catalog/rocks_env.h"
#include "engine/catalog/tables.h"
#include "engine/format/codec.h"

namespace kvsyncfs {

namespace {

class TablesSnapshot final : public CatalogSnapshot {
 public:
  TablesSnapshot(rocksdb::DB& db, Position position)
      : db_(db), snapshot_(db.GetSnapshot()), position_(position) {
    db_.GetIntProperty(rocksdb::DB::Properties::kEstimateNumKeys, &estimated_records_);
  }
  ~TablesSnapshot() override { db_.ReleaseSnapshot(snapshot_); }
  TablesSnapshot(const TablesSnapshot&) = delete;
  TablesSnapshot& operator=(const TablesSnapshot&) = delete;

  Position position() const override { return position_; }
  std::uint64_t estimated_records() const override { return estimated_records_; }
  Result<std::string> records_after(std::string_view key, std::size_t size_max) const override;

 private:
  rocksdb::DB& db_;
  const rocksdb::Snapshot* const snapshot_;
  const Position position_;
  std::uint64_t estimated_records_ = 0;
};

Result<std::string> TablesSnapshot::records_after(std::string_view key,
                                                  std::size_t size_max) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  options.total_order_seek = true;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(db_.NewIterator(options));
  std::string piece;
  Writer out(piece);
  for (it->Seek(key); it->Valid(); it->Next()) {
    const std::string_view name = it->key().ToStringView(), value = it->value().ToStringView();
    if (name == key) continue;
    if (!piece.empty() && piece.size() + 8 + name.size() + value.size() > size_max) break;
    out.u32(static_cast<std::uint32_t>(name.size()));
    out.u32(static_cast<std::uint32_t>(value.size()));
    out.raw(name);
    out.raw(value);
  }
  if (!it->status().ok()) return from_rocks(it->status());
  return piece;
}

class TablesBuilder final : public CatalogBuilder {
 public:
  TablesBuilder(Disk& disk, CatalogOptions options, std::unique_ptr<Tables> tables)
      : disk_(disk), options_(std::move(options)), tables_(std::move(tables)) {}

  Status add(std::string_view piece) override;
  const std::string& last_key() const override { return last_key_; }
  std::uint64_t records() const override { return records_; }
  Result<Position> finish() override;

 private:
  Status flush();

  Disk& disk_;
  const CatalogOptions options_;
  std::unique_ptr<Tables> tables_;
  std::string last_key_;
  std::uint64_t records_ = 0;
};

Status TablesBuilder::flush() {
  KVSYNCFS_TRY(tables_->begin_flush());
  return tables_->finish_flush([] { return false; });
}

Status TablesBuilder::add(std::string_view piece) {
  Reader in(piece);
  rocksdb::WriteBatch batch;
  while (in.left() > 0) {
    const std::uint32_t key_size = in.u32(), value_size = in.u32();
    const std::string_view key = in.raw(key_size), value = in.raw(value_size);
    if (!in.ok() || key <= last_key_)
      return Error(Code::kCorrupt, "snapshot of a catalog: torn, or out of order");
    batch.Put(key, value);
    last_key_ = key;
    ++records_;
  }
  KVSYNCFS_TRY(tables_->write_as_they_are(batch));
  return tables_->memtable_bytes() < options_.memtable_bytes ? Status{} : flush();
}

Result<Position> TablesBuilder::finish() {
  KVSYNCFS_TRY(flush());
  tables_.reset();
  KVSYNCFS_ASSIGN(const auto tables, Tables::open(disk_, options_, false));
  const Cursor& cursor = tables->cursor();
  if (cursor.next_command != 0)
    return Error(Code::kCorrupt, "snapshot of a catalog: within an entry of the log");
  return cursor.applied;
}

}  // namespace

/// What waits in memory goes first, so that the records are those of one position.
Result<std::unique_ptr<CatalogSnapshot>> Tables::snapshot() {
  KVSYNCFS_TRY(write_deferred());
  return std::unique_ptr<CatalogSnapshot>(std::make_unique<TablesSnapshot>(*db_, cursor_.applied));
}

Result<std::unique_ptr<CatalogBuilder>> CatalogBuilder::make(Disk& disk,
                                                             const CatalogOptions& options) {
  const Status made = disk.make_directory(options.directory);
  if (!made && made.error().code != Code::kExists) return made.error();
  KVSYNCFS_ASSIGN(auto tables, Tables::open(disk, options, true));
  return std::unique_ptr<CatalogBuilder>(
      std::make_unique<TablesBuilder>(disk, options, std::move(tables)));
}

namespace {

Result<Cursor> whole_cursor(const Tables& tables) {
  const Cursor& cursor = tables.cursor();
  if (cursor.next_command != 0)
    return Error(Code::kCorrupt, "the catalog ends within an entry of the log");
  return cursor;
}

}  // namespace

Result<CatalogLook> look_at_catalog(Disk& disk, CatalogOptions options) {
  options.read_only = true;
  KVSYNCFS_ASSIGN(const auto tables, Tables::open(disk, options, false));
  KVSYNCFS_ASSIGN(const Cursor cursor, whole_cursor(*tables));
  CatalogLook look{cursor.applied, {}};
  const auto note = [&look](NodeId node) {
    look.greatest_node = std::max(look.greatest_node, node);
  };
  for (const auto& [node, session] : tables->sessions()) note(node);
  for (const auto& [id, record] : tables->segments()) {
    note(record.owner);
    for (const NodeId holder : record.holders) note(holder);
  }
  return look;
}

/// All of it reaches the disk with the checkpoint. An earlier call that failed may have left the
/// cursor before `position`.
Status move_catalog(Disk& disk, const CatalogOptions& options, Position position) {
  KVSYNCFS_ASSIGN(auto tables, Tables::open(disk, options, false));
  KVSYNCFS_ASSIGN(Cursor cursor, whole_cursor(*tables));
  if (cursor.applied >= position)
    return Error(Code::kInvalid, "the catalog is beyond the position where it is to go on");
  Transaction ends;
  for (const auto& [node, session] : tables->sessions())
    if (session.lives()) ends.commands.push_back(EndCommand{node, session.incarnation});
  cursor.applied.value = position.value - 1;
  rocksdb::WriteBatch batch;
  KVSYNCFS_TRY(tables->commit(batch, {}, {}, cursor));
  RocksCatalog catalog(disk, std::move(tables), options);
  KVSYNCFS_ASSIGN(const auto results, catalog.apply(position, ends));
  for (const CommandResult& result : results) KVSYNCFS_TRY(result.status);
  KVSYNCFS_TRY(catalog.begin_checkpoint());
  KVSYNCFS_TRY(catalog.finish_checkpoint([] { return false; }));
  return {};
}

Status remove_catalog(Disk& disk, const std::string& directory) {
  KVSYNCFS_ASSIGN(const bool there, disk.exists(directory));
  if (!there) return {};
  KVSYNCFS_ASSIGN(const auto names, disk.list(directory));
  for (const std::string& name : names) KVSYNCFS_TRY(disk.remove(directory + "/" + name));
  return disk.remove_directory(directory);
}

}  // namespace kvsyncfs
