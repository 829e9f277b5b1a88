#include "engine/catalog/tables.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "engine/catalog/overlay_disk.h"
#include "engine/catalog/rocks_env.h"
#include "engine/catalog/rocks_options.h"

namespace kvsyncfs {

namespace {

/// Of one record in the memtable beside its key and value: node, sequence number, lengths.
constexpr std::uint64_t kMemtableEntryBytes = 40;

void put(rocksdb::WriteBatch& batch, std::string_view key, std::string_view value) {
  batch.Put(key, value);
}

}  // namespace

Tables::~Tables() {
  iterators_.reset();  // before the database they read
  if (db_) db_->Close();
}

Result<std::unique_ptr<Tables>> Tables::open(Disk& disk, const CatalogOptions& options,
                                             bool create) {
  KVSYNCFS_ASSIGN(bool there, disk.exists(options.directory + "/CURRENT"));
  if (create && there) return Error{Code::kExists, options.directory};
  if (!create && !there) return Error{Code::kNotFound, options.directory};
  std::unique_ptr<Tables> tables(new Tables);
  if (options.read_only) tables->overlay_ = std::make_unique<OverlayDisk>(disk);
  tables->env_ = make_rocks_env(options.read_only ? *tables->overlay_ : disk);
  tables->watch_ = std::make_shared<FlushWatch>();
  rocksdb::Options rocks = rocks_options(options, *tables->env_, tables->watch_);
  rocks.create_if_missing = create;
  rocks.error_if_exists = create;
  rocksdb::DB* db = nullptr;
  rocksdb::Status opened = rocksdb::DB::Open(rocks, options.directory, &db);
  if (!opened.ok()) return from_rocks(opened);
  tables->db_.reset(db);
  tables->iterators_ = std::make_unique<IteratorPool>(*db);
  if (!create) KVSYNCFS_TRY(tables->load_memory());
  return tables;
}

Status Tables::load_memory() {
  KVSYNCFS_ASSIGN(auto bytes, get(kCursorKey));
  if (!bytes) return Error{Code::kCorrupt, "catalog: no cursor"};
  KVSYNCFS_ASSIGN(cursor_, decode_cursor(*bytes));
  totals_.inodes = cursor_.inodes;
  totals_.reserved_bytes = cursor_.reserved_bytes;
  return load_segments();
}

Status Tables::load_segments() {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek("s"); it->Valid() && it->key().starts_with("s"); it->Next()) {
    KVSYNCFS_ASSIGN(SegmentRecord record, decode_segment(it->value().ToStringView()));
    totals_.live_bytes += record.live_bytes;
    segments_[{number_in_key(it->key().ToStringView(), 0)}] = record;
  }
  return it->status().ok() ? Status{} : Status(from_rocks(it->status()));
}

Status Tables::commit(rocksdb::WriteBatch& batch, std::span<StagedInode> inodes,
                      const StagedSegments& segments, const Cursor& cursor) {
  boost::container::small_vector<InodeId, 4> changing;
  for (const StagedInode& s : inodes) {
    if (s.state == StagedInode::State::kRead) continue;
    changing.push_back(s.id);
    if (s.state == StagedInode::State::kChanged) {
      put(batch, inode_key(s.id).view(), encode(s.inode));
    } else {
      batch.Delete(inode_key(s.id).view());
    }
  }
  for (const auto& [id, record] : segments) {
    if (record) {
      put(batch, segment_key(id).view(), encode(*record));
    } else {
      batch.Delete(segment_key(id).view());
    }
  }
  put(batch, kCursorKey, encode_cursor(cursor));

  rocksdb::WriteOptions options;
  options.disableWAL = true;
  inode_cache_.begin_commit(changing);
  rocksdb::Status written = db_->Write(options, &batch);
  if (written.ok()) remember(inodes, segments, cursor);
  inode_cache_.end_commit();
  memtable_bytes_.fetch_add(batch.GetDataSize() + batch.Count() * kMemtableEntryBytes,
                            std::memory_order_relaxed);
  return written.ok() ? Status{} : Status(from_rocks(written));
}

void Tables::remember(std::span<StagedInode> inodes, const StagedSegments& segments,
                      const Cursor& cursor) {
  for (const StagedInode& s : inodes)
    if (s.state == StagedInode::State::kChanged) inode_cache_.put(s.id, s.inode);
  cursor_ = cursor;
  std::unique_lock lock(memory_mutex_);
  totals_.inodes = cursor.inodes;
  totals_.reserved_bytes = cursor.reserved_bytes;
  for (const auto& [id, record] : segments) {
    SegmentRecord& known = segments_[id];
    totals_.live_bytes += (record ? record->live_bytes : 0) - known.live_bytes;
    if (record) {
      known = *record;
    } else {
      segments_.erase(id);
    }
  }
}

Status Tables::begin_flush() {
  if (overlay_) return {};
  if (watch_->clear_error()) {
    rocksdb::Status resumed = db_->Resume();
    if (!resumed.ok()) return from_rocks(resumed);
  }
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;
  rocksdb::Status begun = db_->Flush(options);
  if (!begun.ok()) return from_rocks(begun);
  memtable_bytes_.store(0, std::memory_order_relaxed);
  return {};
}

Status Tables::finish_flush() {
  if (overlay_) return {};
  KVSYNCFS_TRY(watch_->wait(*db_));
  iterators_->drop_idle();
  return {};
}

}  // namespace kvsyncfs
