// The catalog: the ordered map of small records, a deterministic state machine over RocksDB.
//
// apply() is the only way to change it (but for fsck's repair()); the same transactions from the
// same start give the same bytes (digest()). It reads no clock, no random number and no local
// state. Each command is atomic, and what reaches the disk carries the cursor (position, command
// index) that fits it, so replay after a crash skips what is already there. RocksDB runs without a
// write-ahead log: the shared log is that.
//
// Key schema (big-endian numbers, so that ranges are ordered): kvsyncfs-format(5), "Catalog".
//   m <name>                                 counters, cursor, features
//   i <ino>                                  inode
//   d <parent ino> <name>                    dentry: ino, type, cookie
//   c <parent ino> <cookie>                  readdir order: ino, type, name
//   x <ino> <name>                           extended attribute
//   e <ino> <file offset>                    extent: length, segment, segment offset
//   r <segment> <segment offset> <ino> <file offset>   reverse of e (not for reserved extents):
//   length s <segment>                              segment record o <ino> orphan
//   n <node>                                 the node's last session
//   h <name>                                 what keeps the segments of a saved catalog
//   l <ino> <kind>                           locks held and waited for
//   k <session> <ino> <kind>                 tables of locks with something of the session
//   w <session> <owner> <wait>               waits for POSIX locks: ino
// Thread: apply by one thread at a time (the log sees to it); all reads from any thread, at any
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/env/disk.h"
#include "engine/format/command.h"
#include "engine/format/records.h"

namespace kvsyncfs {

/// A wait for a lock that a command ended by giving the lock.
struct GrantedLock {
  InodeId inode;
  LockKind kind = LockKind::kPosix;
  std::uint64_t wait = 0;
  LockOwner owner;
  bool operator==(const GrantedLock&) const = default;
};

/// What one command did.
struct CommandResult {
  InodeId inode;           ///< created, linked, unlinked, renamed or changed inode
  Status status;           ///< the command's own verdict
  Inode attributes;        ///< its record afterwards
  InodeId replaced;        ///< rename: the inode whose name was taken over or exchanged; else 0
  bool orphaned = false;   ///< unlink/rmdir/rename: `inode` (or `replaced`) reached link count 0
  SegmentId segment;       ///< OpenSegment
  SessionId session;       ///< Join, End
  std::uint64_t wait = 0;  ///< AcquireLock: it waits, under this number; 0: it is granted
  std::vector<GrantedLock> granted;  ///< to others, in this order
  std::vector<InodeId> reclaimable;  ///< HoldOrphans: nobody holds these any more
  bool more = false;                 ///< Reclaim: extents are left
  std::uint64_t moved_bytes = 0;     ///< MoveExtents: bytes whose extents moved
};

struct CatalogTotals {
  std::uint64_t inodes = 0;          ///< in use, orphans included
  std::uint64_t live_bytes = 0;      ///< sum of live_bytes over segments
  std::uint64_t reserved_bytes = 0;  ///< by fallocate
};

struct ExtentChange {  ///< told to the observer while apply holds the catalog
  InodeId inode;
  std::uint64_t offset = 0, length = 0;
};

/// Of everything that the commands up to a position have written, one after the other. Catalogs
/// that came from one by the same log have the same; a difference stays for good.
struct HistoryDigest {
  Position position;  ///< 0: none is known
  std::uint32_t digest = 0;
  bool operator==(const HistoryDigest&) const = default;
};
inline constexpr std::uint64_t kHistoryPeriod = 1000;  ///< positions

struct CatalogOptions {
  std::string directory;  ///< the store's catalog/
  std::uint64_t block_cache_bytes = 32u << 20;
  std::uint64_t memtable_bytes = 64u << 20;  ///< checkpoint when memtable_bytes() passes it
  bool read_only = false;      ///< apply still works, in memory only; nothing reaches the disk
  bool keeps_history = false;  ///< HistoryDigest is told; the same for all catalogs of a log
  bool for_check = false;      ///< damage refuses neither the catalog nor the commands behind it
};

/// How fsck tells what it finds, and what it is told of the world around the catalog.
struct CatalogCheckOptions {
  std::function<void(const std::string&)> report = [](const std::string&) {};  ///< one line each
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = [](auto, auto) {};
  /// Bytes of a segment's file; nothing: there is none.
  std::function<std::optional<std::uint64_t>(SegmentId)> segment_file = [](SegmentId) {
    return std::optional<std::uint64_t>();
  };
  bool knows_all_records = true;  ///< else records of an unknown kind are somebody's
};

class CatalogSnapshot;

class Catalog {
 public:
  virtual ~Catalog() = default;

  /// mkfs: an empty catalog with the root directory (mode 0755, uid and gid given). Errors:
  /// kExists, kNoSpace, kIo.
  static Status format(Disk& disk, const CatalogOptions& options, std::uint32_t uid,
                       std::uint32_t gid, Timestamp time);
  /// Errors: kNotFound, kCorrupt, kIo, kNoMemory.
  static Result<std::unique_ptr<Catalog>> open(Disk& disk, const CatalogOptions& options);

  /// Applies one log entry. One result per command; a command already applied (replay) has an empty
  /// result with status ok; all of a session that does not live have kFenced, all of a request that
  /// the session has had kStale. Errors: kCorrupt (position is not the next one; or a command
  /// needs a record that does not decode), kIo, kNoMemory, kNoSpace (RocksDB refused). The catalog
  /// stops: every later apply fails the same way.
  virtual Result<std::vector<CommandResult>> apply(Position position,
                                                   const Transaction& transaction) = 0;
  /// Last applied position.
  virtual Position applied() const = 0;

  /// Called with every file range whose extents changed, inside apply. Set before the first apply.
  virtual void set_extent_observer(std::function<void(const ExtentChange&)> observer) = 0;
  /// Called with every inode whose record changed or went, likewise.
  virtual void set_inode_observer(std::function<void(InodeId)> observer) = 0;

  // Reads. kNotFound where the record is missing, kCorrupt where it does not decode, kIo.
  virtual Result<Inode> inode(InodeId id) const = 0;
  virtual Result<Dentry> lookup(InodeId parent, std::string_view name) const = 0;
  /// Up to `count_max` entries whose cookie is above `after`, in cookie order.
  virtual Result<std::vector<Dentry>> list(InodeId parent, std::uint64_t after,
                                           std::size_t count_max) const = 0;
  virtual Result<std::string> xattr(InodeId id, std::string_view name) const = 0;
  virtual Result<std::vector<std::string>> xattr_names(InodeId id) const = 0;
  /// Extents that touch [offset, offset + length), in file order, uncut; at most `count_max`.
  virtual Result<std::vector<Extent>> extents(InodeId id, std::uint64_t offset,
                                              std::uint64_t length,
                                              std::size_t count_max) const = 0;
  virtual Result<SegmentRecord> segment(SegmentId id) const = 0;
  virtual Result<std::vector<std::pair<SegmentId, SegmentRecord>>> segments() const = 0;
  /// Live extents of a segment (owner and extent) from `from_offset` on, in segment order; at most
  /// `count_max`.
  virtual Result<std::vector<std::pair<InodeId, Extent>>> segment_extents(
      SegmentId id, std::uint64_t from_offset, std::size_t count_max) const = 0;
  virtual Result<std::vector<InodeId>> orphans() const = 0;
  /// Who holds it, ended sessions included. Nothing: it is no orphan.
  virtual Result<std::optional<OrphanRecord>> orphan(InodeId id) const = 0;
  /// Empty: none. F_GETLK is first_conflict() of it (locks.h).
  virtual Result<LockTable> locks(InodeId id, LockKind kind) const = 0;
  /// Tables with a lock, or a wait for one, of the session.
  virtual Result<std::vector<std::pair<InodeId, LockKind>>> locked_by(SessionId session) const = 0;
  /// Those that no session holds, at most `count_max`. Slow: reads all orphans.
  virtual Result<std::vector<InodeId>> reclaimable_orphans(std::size_t count_max) const = 0;
  virtual CatalogTotals totals() const = 0;
  /// The last session of each node that ever had one.
  virtual std::map<NodeId, SessionRecord> sessions() const = 0;
  /// What keeps segments that nothing refers to any more.
  virtual Holds holds() const = 0;

  /// Bytes that only memory holds; checkpoint() writes them.
  virtual std::uint64_t memtable_bytes() const = 0;
  /// First half: everything applied so far goes into an immutable memtable. Call while no apply
  /// runs and after log and segments are durable up to applied(). Returns at once. Errors: kIo.
  virtual Status begin_checkpoint() = 0;
  /// Second half: waits until that memtable is on disk, or `gives_up` says that this takes too
  /// long. Returns the position up to which the catalog is durable. Errors: kIo, kNoSpace, kTimeout
  /// (it goes on, and the next checkpoint is this one).
  virtual Result<Position> finish_checkpoint(const std::function<bool()>& gives_up = [] {
    return false;
  }) = 0;

  /// All records as they are now, for another node. Call while no apply runs, between two entries
  /// of the log. Errors: kIo, kNoSpace; that of an apply that failed.
  virtual Result<std::unique_ptr<CatalogSnapshot>> snapshot() = 0;
  /// Goes on with the catalog in another folder, and leaves its own as it is on the disk. Requires
  /// that nothing was applied and nobody reads. Errors: those of open(); it goes on as before then.
  virtual Status reopen(const std::string& directory) = 0;

  /// At the last multiple of kHistoryPeriod that was applied since the start; position 0: there was
  /// none.
  virtual HistoryDigest history() const = 0;
  /// At one of the last sixteen of them. Nothing: it is none of these.
  virtual std::optional<std::uint32_t> history_at(Position position) const = 0;

  /// CRC32C over all keys and values except the cursor, in key order: equal catalogs, equal
  /// digests. Slow.
  virtual Result<std::uint32_t> digest() const = 0;

  /// fsck: tells every inconsistency (dentry without inode, wrong link count or live_bytes, extent
  /// overlap, missing reverse record, unknown segment, ...) as one line; returns the count. Errors:
  /// kIo, kCorrupt (RocksDB cannot read its own files).
  virtual Result<std::uint64_t> check(const CatalogCheckOptions& options) const = 0;
  /// fsck --repair: mends in one atomic write what check() finds and the other records have the
  /// right value of, tells that, and returns its count. What check() still finds then cannot be
  /// mended. The log stays as it is: a checkpoint makes the repair durable. Requires: applied() is
  /// an entry without commands (its ids are for what is made), and the log is durable up to it.
  /// Errors: those of check(), kNoSpace.
  virtual Result<std::uint64_t> repair(const CatalogCheckOptions& options) = 0;
  /// Printable paths ("/a/b") of those inodes that have one. Slow: reads all entries.
  virtual Result<std::unordered_map<InodeId, std::string>> paths(
      const std::unordered_set<InodeId>& ids) const = 0;
};

}  // namespace kvsyncfs
