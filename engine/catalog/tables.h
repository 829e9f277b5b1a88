// The catalog's records in RocksDB: reads, the small tables that are kept in memory, and the one
// way to write (commit). Thread: reads any; commit, load_memory and format by one thread at a time.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/catalog/catalog.h"
#include "engine/catalog/flush_watch.h"
#include "engine/catalog/inode_cache.h"
#include "engine/catalog/iterator_pool.h"
#include "engine/catalog/keys.h"
#include "engine/catalog/snapshot.h"

namespace kvsyncfs {

/// An inode as a command sees and changes it.
struct StagedInode {
  enum class State { kRead, kChanged, kRemoved };
  InodeId id;
  Inode inode;
  State state = State::kRead;
};

using StagedSegments = std::map<SegmentId, std::optional<SegmentRecord>>;  ///< nothing: deleted
using StagedHolds = std::map<std::string, std::optional<HoldRecord>>;      ///< nothing: released

class Tables {
 public:
  static Result<std::unique_ptr<Tables>> open(Disk& disk, const CatalogOptions& options,
                                              bool create);
  ~Tables();

  // Reads. Errors: those of Catalog.
  Result<Inode> inode(InodeId id) const;
  Result<std::optional<Dentry>> dentry(InodeId parent, std::string_view name) const;
  Result<std::vector<Dentry>> list(InodeId parent, std::uint64_t after,
                                   std::size_t count_max) const;
  Result<std::optional<std::string>> xattr(InodeId id, std::string_view name) const;
  Result<std::vector<std::string>> xattr_names(InodeId id) const;
  Result<std::vector<Extent>> extents(InodeId id, std::uint64_t offset, std::uint64_t length,
                                      std::size_t count_max) const;
  Result<std::vector<std::pair<InodeId, Extent>>> segment_extents(SegmentId id,
                                                                  std::uint64_t from_offset,
                                                                  std::size_t count_max) const;
  Result<std::optional<OrphanRecord>> orphan(InodeId id) const;
  Result<std::vector<InodeId>> orphans() const;
  Result<std::vector<InodeId>> reclaimable_orphans(std::size_t count_max) const;
  bool is_held(const OrphanRecord& orphan) const;            ///< by a session that lives
  Result<LockTable> locks(InodeId id, LockKind kind) const;  ///< empty: none
  Result<std::vector<std::pair<InodeId, LockKind>>> locked_by(SessionId session) const;
  /// For POSIX locks: the waits and the inodes that they wait for.
  Result<std::vector<std::pair<std::uint64_t, InodeId>>> waits_of(const LockOwner& owner) const;
  std::optional<SegmentRecord> segment(SegmentId id) const;
  std::vector<std::pair<SegmentId, SegmentRecord>> segments() const;
  std::optional<SessionRecord> session(NodeId node) const;
  std::map<NodeId, SessionRecord> sessions() const;
  Holds holds() const;
  CatalogTotals totals() const;
  const Cursor& cursor() const { return cursor_; }  ///< apply only

  /// Adds the staged records and `cursor` to `batch`, writes all as one, then changes what memory
  /// holds.
  Status commit(rocksdb::WriteBatch& batch, std::span<StagedInode> inodes,
                const StagedSegments& segments, Cursor cursor);
  /// Those whose records were committed. Apply only.
  void remember_sessions(const std::map<NodeId, SessionRecord>& changed);
  void remember_holds(const StagedHolds& changed);
  std::uint64_t memtable_bytes() const { return memtable_bytes_.load(std::memory_order_relaxed); }
  Status write_deferred();
  /// All records of this moment. Apply only.
  Result<std::unique_ptr<CatalogSnapshot>> snapshot();
  /// For who makes a catalog of another one's records.
  Status write_as_they_are(rocksdb::WriteBatch& batch) { return write(batch); }
  Status begin_flush();
  Status finish_flush(const std::function<bool()>& gives_up);

  /// No extent of the file ends after it; nothing known: no answer. Apply only.
  std::optional<std::uint64_t> extents_end(InodeId id) const;
  void raise_extents_end(InodeId id, std::uint64_t end, bool has_no_extents);

  using Visit = std::function<Status(std::string_view key, std::string_view value)>;
  /// All records in key order, after write_deferred(). Errors: kIo, kCorrupt, and what `visit`
  /// returns.
  Status scan(const Visit& visit) const { return scan({}, {}, visit); }
  /// Those with `begin` <= key < `end`; an empty end is none.
  Status scan(std::string_view begin, std::string_view end, const Visit& visit) const;
  Result<std::optional<std::string>> get(std::string_view key) const;
  std::uint64_t estimated_records() const;

 private:
  Tables() = default;
  Status load_memory(bool for_check);
  Status load_segments(bool for_check);
  Status load_sessions(bool for_check);
  Status load_holds(bool for_check);
  Status write(rocksdb::WriteBatch& batch);
  Status write_deferred_locked();
  std::uint32_t history_after(const rocksdb::WriteBatch& batch, std::span<const StagedInode> inodes,
                              const StagedSegments& segments, const Cursor& cursor) const;
  void remember(std::span<StagedInode> inodes, const StagedSegments& segments, const Cursor& cursor,
                bool deferred);

  std::unique_ptr<Disk> overlay_;  ///< read-only catalogs write here
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<FlushWatch> watch_;  ///< shared with RocksDB
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<IteratorPool> iterators_;
  mutable InodeCache inode_cache_;
  std::atomic<std::uint64_t> memtable_bytes_{0};
  std::atomic<bool> flushing_{false};  ///< from begin_flush() to a good end of finish_flush()
  bool keeps_history_ = false;
  std::uint64_t defer_below_bytes_ = 0;  ///< memtable size up to which records are deferred
  std::mutex commit_mutex_;
  Cursor cursor_;
  bool cursor_deferred_ = false;
  std::set<SegmentId> deferred_segments_;

  struct ExtentsEnd {
    InodeId id;
    std::uint64_t end = 0;
  };
  std::vector<ExtentsEnd> extents_ends_{1024};  ///< by id; a newcomer takes the place

  mutable std::shared_mutex memory_mutex_;  ///< guards what follows; a leaf
  std::unordered_map<InodeId, Inode> deferred_inodes_;
  std::unordered_map<SegmentId, SegmentRecord> segments_;
  std::map<NodeId, SessionRecord> sessions_;
  Holds holds_;
  CatalogTotals totals_;
};

}  // namespace kvsyncfs
