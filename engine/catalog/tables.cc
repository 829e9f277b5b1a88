#include "engine/catalog/tables.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "engine/base/checksum.h"
#include "engine/catalog/overlay_disk.h"
#include "engine/catalog/rocks_env.h"
#include "engine/catalog/rocks_options.h"
#include "engine/format/codec.h"

namespace kvsyncfs {

namespace {

/// Of one record in the memtable beside its key and value: node, sequence number, lengths.
constexpr std::uint64_t kMemtableEntryBytes = 40;

constexpr std::size_t kDeferredInodesMax = 4096;

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
  tables->keeps_history_ = options.keeps_history;
  tables->defer_below_bytes_ = options.memtable_bytes * (kMemtableLimitFactor / 2);
  rocksdb::Options rocks = rocks_options(options, *tables->env_, tables->watch_);
  rocks.create_if_missing = create;
  rocks.error_if_exists = create;
  rocksdb::DB* db = nullptr;
  rocksdb::Status opened = rocksdb::DB::Open(rocks, options.directory, &db);
  if (!opened.ok()) return from_rocks(opened);
  tables->db_.reset(db);
  tables->iterators_ = std::make_unique<IteratorPool>(*db);
  if (!create) KVSYNCFS_TRY(tables->load_memory(options.for_check));
  return tables;
}

Status Tables::load_memory(bool for_check) {
  KVSYNCFS_ASSIGN(auto bytes, get(kCursorKey));
  if (!bytes) return Error{Code::kCorrupt, "catalog: no cursor"};
  KVSYNCFS_ASSIGN(cursor_, decode_cursor(*bytes));
  totals_.inodes = cursor_.inodes;
  totals_.reserved_bytes = cursor_.reserved_bytes;
  KVSYNCFS_TRY(load_segments(for_check));
  KVSYNCFS_TRY(load_sessions(for_check));
  return load_holds(for_check);
}

Status Tables::load_segments(bool for_check) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
  for (it->Seek("s"); it->Valid() && it->key().starts_with("s"); it->Next()) {
    const auto record = decode_segment(it->value().ToStringView());
    if (!record && for_check) continue;
    if (!record) return record.error();
    totals_.live_bytes += record->live_bytes;
    segments_[{number_in_key(it->key().ToStringView(), 0)}] = *record;
  }
  return it->status().ok() ? Status{} : Status(from_rocks(it->status()));
}

Status Tables::load_sessions(bool for_check) {
  return scan("n", "o", [&](std::string_view key, std::string_view value) -> Status {
    const auto record = decode_session(value);
    if (!record) return for_check ? Status{} : Status(record.error());
    sessions_[{number_in_key(key, 0)}] = *record;
    return {};
  });
}

Status Tables::load_holds(bool for_check) {
  return scan("h", "i", [&](std::string_view key, std::string_view value) -> Status {
    auto record = decode_hold(value);
    if (!record) return for_check ? Status{} : Status(record.error());
    holds_[std::string(key.substr(1))] = std::move(*record);
    return {};
  });
}

Status Tables::write(rocksdb::WriteBatch& batch) {
  if (batch.Count() == 0) return {};
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  rocksdb::Status written = db_->Write(options, &batch);
  if (!written.ok()) return from_rocks(written);
  memtable_bytes_.fetch_add(batch.GetDataSize() + batch.Count() * kMemtableEntryBytes,
                            std::memory_order_relaxed);
  return {};
}

/// Of the records, not of what reaches the disk now: which of them wait in memory differs from node
/// to node.
std::uint32_t Tables::history_after(const rocksdb::WriteBatch& batch,
                                    std::span<const StagedInode> inodes,
                                    const StagedSegments& segments, const Cursor& cursor) const {
  constexpr std::size_t kBatchHeaderSize = 12;  // a number of RocksDB's own, and a count
  std::string records;
  Writer w(records);
  w.u64(cursor.applied.value);
  w.u32(cursor.next_command);
  w.u64(cursor.inodes);
  w.u64(cursor.reserved_bytes);
  for (const StagedInode& s : inodes) {
    if (s.state == StagedInode::State::kRead) continue;
    w.u64(s.id.value);
    w.blob(s.state == StagedInode::State::kChanged ? encode(s.inode) : std::string());
  }
  for (const auto& [id, record] : segments) {
    w.u64(id.value);
    w.blob(record ? encode(*record) : std::string());
  }
  w.raw(std::string_view(batch.Data()).substr(kBatchHeaderSize));
  return crc32c(as_bytes(records), cursor_.history);
}

Status Tables::commit(rocksdb::WriteBatch& batch, std::span<StagedInode> inodes,
                      const StagedSegments& segments, Cursor cursor) {
  std::lock_guard lock(commit_mutex_);
  if (keeps_history_) cursor.history = history_after(batch, inodes, segments, cursor);
  const bool defers = memtable_bytes() < defer_below_bytes_ && !flushing_.load();
  boost::container::small_vector<InodeId, 4> changing;
  for (const StagedInode& s : inodes) {
    if (s.state == StagedInode::State::kRead) continue;
    changing.push_back(s.id);
    if (s.state == StagedInode::State::kRemoved) {
      batch.Delete(inode_key(s.id).view());
    } else if (!defers) {
      put(batch, inode_key(s.id).view(), encode(s.inode));
    }
  }
  for (const auto& [id, record] : segments) {
    if (!record) {
      batch.Delete(segment_key(id).view());
    } else if (!defers) {
      put(batch, segment_key(id).view(), encode(*record));
    }
  }
  if (!defers) {
    KVSYNCFS_TRY(write_deferred_locked());
    put(batch, kCursorKey, encode_cursor(cursor));
  }
  inode_cache_.begin_commit(changing);
  Status written = write(batch);
  if (written) remember(inodes, segments, cursor, defers);
  inode_cache_.end_commit();
  KVSYNCFS_TRY(written);
  return deferred_inodes_.size() < kDeferredInodesMax ? Status{} : write_deferred_locked();
}

void Tables::remember(std::span<StagedInode> inodes, const StagedSegments& segments,
                      const Cursor& cursor, bool deferred) {
  cursor_ = cursor;
  cursor_deferred_ = deferred;
  std::unique_lock lock(memory_mutex_);
  for (const StagedInode& s : inodes) {
    if (s.state == StagedInode::State::kRemoved) deferred_inodes_.erase(s.id);
    if (s.state != StagedInode::State::kChanged) continue;
    if (deferred) deferred_inodes_[s.id] = s.inode;
    inode_cache_.put(s.id, s.inode);
  }
  totals_.inodes = cursor.inodes;
  totals_.reserved_bytes = cursor.reserved_bytes;
  for (const auto& [id, record] : segments) {
    SegmentRecord& known = segments_[id];
    totals_.live_bytes += (record ? record->live_bytes : 0) - known.live_bytes;
    if (record) {
      known = *record;
      if (deferred) deferred_segments_.insert(id);
    } else {
      segments_.erase(id);
      deferred_segments_.erase(id);
    }
  }
}

Status Tables::write_deferred() {
  std::lock_guard lock(commit_mutex_);
  return write_deferred_locked();
}

void Tables::remember_sessions(const std::map<NodeId, SessionRecord>& changed) {
  if (changed.empty()) return;
  std::unique_lock lock(memory_mutex_);
  for (const auto& [node, record] : changed) sessions_[node] = record;
}

void Tables::remember_holds(const StagedHolds& changed) {
  if (changed.empty()) return;
  std::unique_lock lock(memory_mutex_);
  for (const auto& [name, record] : changed) {
    if (record)
      holds_[name] = *record;
    else
      holds_.erase(name);
  }
}

/// Only this thread changes what is deferred, so it may read without the memory's lock.
Status Tables::write_deferred_locked() {
  if (!cursor_deferred_) return {};
  std::vector<InodeId> ids;
  ids.reserve(deferred_inodes_.size());
  for (const auto& [id, inode] : deferred_inodes_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());  // neighbours follow each other into the memtable
  rocksdb::WriteBatch batch;
  for (InodeId id : ids) put(batch, inode_key(id).view(), encode(deferred_inodes_.at(id)));
  for (SegmentId id : deferred_segments_)
    put(batch, segment_key(id).view(), encode(segments_.at(id)));
  put(batch, kCursorKey, encode_cursor(cursor_));
  KVSYNCFS_TRY(write(batch));
  cursor_deferred_ = false;
  deferred_segments_.clear();
  std::unique_lock memory_lock(memory_mutex_);
  deferred_inodes_.clear();
  return {};
}

Status Tables::begin_flush() {
  if (overlay_) return {};
  KVSYNCFS_TRY(write_deferred());
  flushing_.store(true);
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;
  rocksdb::Status begun;
  if (auto error = watch_->take_error()) {
    // RocksDB tells of an error before it has stopped for it; waiting here makes sure that this
    // flush is not taken for the failed one.
    options.wait = true;
    begun = db_->Resume();
    if (begun.ok()) begun = db_->Flush(options);
    if (!begun.ok()) watch_->OnBackgroundError(rocksdb::BackgroundErrorReason::kFlush, &begun);
  } else {
    begun = db_->Flush(options);
  }
  if (!begun.ok()) return from_rocks(begun);
  memtable_bytes_.store(0, std::memory_order_relaxed);
  return {};
}

std::optional<std::uint64_t> Tables::extents_end(InodeId id) const {
  const ExtentsEnd& known = extents_ends_[std::hash<InodeId>{}(id) % extents_ends_.size()];
  if (known.id != id) return std::nullopt;
  return known.end;
}

void Tables::raise_extents_end(InodeId id, std::uint64_t end, bool has_no_extents) {
  ExtentsEnd& known = extents_ends_[std::hash<InodeId>{}(id) % extents_ends_.size()];
  if (known.id == id) {
    known.end = std::max(known.end, end);
  } else if (has_no_extents) {
    known = {id, end};
  }
}

Status Tables::finish_flush(const std::function<bool()>& gives_up) {
  if (overlay_) return {};
  KVSYNCFS_TRY(watch_->wait(*db_, gives_up));
  flushing_.store(false);
  iterators_->drop_idle();
  return {};
}

}  // namespace kvsyncfs
