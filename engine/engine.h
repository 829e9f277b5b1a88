// The engine: a store of keys (paths) and values (files). The only header that fs/, tools/ and
// programs that link the store see, beside engine/workers.h.
//
// One object is one life (incarnation) of one node on one store. It starts no thread, reads no
// clock and opens no file by itself: Clock, Disk and Random come from outside, and run_background()
// does its deferred work when somebody calls it (Workers in engine/workers.h owns threads that do).
// Thread: every method from any thread, unless said. Operations on one inode are atomic to each
// other; changes of names are linearizable (P1). No lock is held over a call back into the caller.
// Permissions are the caller's to check (the kernel does, -o default_permissions).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/env/random.h"
#include "engine/format/command.h"
#include "engine/format/lock_table.h"
#include "engine/format/records.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

struct ClusterSeams;
class EngineAdmin;

struct EngineOptions {
  std::string store;                              ///< folder of the store
  std::uint64_t cache_size_bytes = 256u << 20;    ///< for what was read: pages above all
  std::uint64_t write_buffer_bytes = 64u << 20;   ///< dirty bytes not yet in a segment
  std::uint64_t write_age_ns = 1'000'000'000;     ///< dirty bytes older than this are flushed
  std::uint64_t timeout_ns = 15'000'000'000;      ///< no wait for another thread is longer
  std::uint64_t heal_delay_ns = 600'000'000'000;  ///< a node that is away for longer is replaced
  /// Between two passes of the scrub that runs by itself; 0: there is none.
  std::uint64_t scrub_period_ns = 7 * 86'400'000'000'000;
  bool read_only = false;
  bool for_check = false;  ///< fsck: opens also what check() and repair() have to tell of
  /// With both: of a cluster's node, what it has on its own disk, without the log; 0: not that.
  NodeId check_node = {};
  std::function<void(std::string_view)> warn = [](std::string_view) {};  ///< one line, any thread
  ClusterSeams* cluster =
      nullptr;  ///< of a store that is a node's of a cluster; outlives the engine
};

struct FormatOptions {
  std::string store;  ///< folder that is to become the store; must exist and be empty
  std::array<std::uint8_t, 16> uuid{};
  std::string label;
  std::uint64_t size_bytes = 0;
  std::uint32_t uid = 0, gid = 0;  ///< of the root directory
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = [](auto, auto) {};
};
inline constexpr std::uint64_t kStoreSizeMin = 32u << 20;  ///< bytes

struct Entry {
  InodeId inode;
  Inode attributes;
};
struct ListEntry {
  Dentry dentry;
  Inode attributes;  ///< as of the listing; with the write buffer's size and times
};
struct NewNode {
  std::uint32_t mode = 0;   ///< with type
  std::uint32_t umask = 0;  ///< applied unless the parent has a default ACL
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t device = 0;
  std::string target;
};
struct AttributeChange {
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<std::uint64_t> size;
  std::optional<Timestamp> atime, mtime;
  bool kill_privileges = false;  ///< as clear_privileges(), for a member of the file's group
  bool kill_setgid = false;      ///< with it: for who is no member
};
/// Whether the caller is in a group.
using GroupTest = std::function<bool(std::uint32_t gid)>;
enum class SeekKind { kData, kHole };
struct WriteOptions {
  bool append = false;       ///< offset is ignored, bytes go to the end of the file
  std::uint64_t handle = 0;  ///< that writes; see check_change()
};

/// Bytes of a file that an owner locks or unlocks: a process (kPosix), an open file (kFlock: always
/// all bytes).
struct LockRange {
  InodeId inode;
  LockKind kind = LockKind::kPosix;
  std::uint64_t owner = 0;                     ///< this node's own name for it
  std::uint64_t start = 0, end = kLockEndMax;  ///< both included
  std::uint32_t pid = 0;                       ///< for lock_in_the_way()
};
struct HeldLock {
  LockType type = LockType::kShared;
  std::uint64_t start = 0, end = kLockEndMax;
  std::uint32_t pid = 0;  ///< 0: of another node
};
struct LockAnswer {
  Status status;                  ///< ok: the lock is held, unless it was interrupted
  bool interrupted = false;       ///< cancel_lock() came first; the lock is not held
  bool pages_may_be_old = false;  ///< the kernel has to forget the file's before it uses the lock
};
/// Called once, from a thread of the engine's tasks or of its close(). May call the engine.
using LockDone = std::function<void(const LockAnswer&)>;

struct SpaceInfo {  ///< for statfs(2)
  std::uint64_t total_bytes = 0, free_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< of the free ones: the disk below may have less room
  std::uint64_t total_inodes = 0, free_inodes = 0;
};

/// All counters only grow within the life of an engine; gauges are marked.
struct EngineCounters {
  std::uint64_t read_bytes = 0, written_bytes = 0;  ///< by callers
  std::uint64_t page_hits = 0, page_misses = 0;     ///< pages served from memory / from a segment
  std::uint64_t buffer_hit_pages = 0;  ///< part of page_hits: still in the write buffer
  std::uint64_t dirty_bytes = 0, dirty_bytes_max = 0;  ///< gauges: now, and the bound
  std::uint64_t cache_bytes = 0, cache_bytes_max = 0;  ///< gauges
  std::uint64_t log_position = 0, log_durable = 0, log_held_bytes = 0,
                log_capacity_bytes = 0;  ///< gauges
  std::uint64_t syncs = 0, flushes = 0, checkpoints = 0;
  std::uint64_t inline_bytes = 0;                      ///< user bytes that went through the log
  std::uint64_t segment_count = 0, segment_bytes = 0;  ///< gauges
  std::uint64_t segment_written_bytes = 0, appended_bytes = 0;
  std::uint64_t cleaned_segments = 0, moved_bytes = 0;                     ///< cleaner
  std::uint64_t live_bytes = 0, inodes = 0, held_inodes = 0, orphans = 0;  ///< gauges
  std::uint64_t ballast_bytes = 0;  ///< gauge: kept of the disk for when others fill it
  std::uint64_t corrupt_pages = 0, errors = 0;
  // Of a cluster: written to copies of others' segments, pulled from peers, copied to new holders.
  std::uint64_t copied_bytes = 0, pulled_pages = 0, healed_bytes = 0;
  std::uint64_t at_risk_segments = 0;  ///< gauge: lack a holder
  std::uint64_t dirty_age_ns = 0;      ///< gauge: of the oldest dirty byte
  // Of a cluster: nodes that are up, and changes that wait for others; gauges.
  std::uint64_t members_up = 0, unacknowledged = 0;
  std::uint64_t leases_lost = 0;
  std::uint64_t refused_connections = 0;  ///< of those who did not prove to be nodes
  // The scrub that runs by itself: all that it read, and gauges of its pass.
  std::uint64_t scrubbed_bytes = 0, scrub_done_bytes = 0, scrub_total_bytes = 0;
  std::uint64_t scrub_mended_pages = 0, scrub_bad_pages = 0;  ///< bad: that it could not mend
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// Makes a store: folders, log, catalog with a root directory; the superblock last, then reads it
  /// back. Errors: kExists (formatted already or not empty), kInvalid (size below kStoreSizeMin),
  /// kNoSpace, kIo, kAccess.
  static Status format(Disk& disk, Clock& clock, const FormatOptions& options);
  /// Reads and checks the superblock only. Errors: kNotFormatted, kCorrupt, kNewerFormat,
  /// kNotFound, kIo.
  static Result<Superblock> superblock(Disk& disk, const std::string& store);
  /// Opens, recovers and takes the store. The seams outlive the engine. The caller holds the
  /// store's lock. Errors: those of superblock(), kUnsupported (a node of a cluster), kNoSpace,
  /// kNoMemory.
  static Result<std::unique_ptr<Engine>> open(Disk& disk, Clock& clock, Random& random,
                                              EngineOptions options);
  /// Flushes everything, makes it durable and stops; later calls fail with kShutdown. Errors: kIo,
  /// kNoSpace.
  virtual Status close() = 0;

  virtual const Superblock& superblock() const = 0;

  // Names. Errors: kNotFound, kExists, kNotDirectory, kIsDirectory, kNotEmpty, kNameTooLong,
  // kTooManyLinks, kInvalid (rename into itself), kNoSpace, kReadOnly, kIo, kShutdown.
  virtual Result<Entry> lookup(InodeId parent, std::string_view name) = 0;
  virtual Result<Entry> create(InodeId parent, std::string_view name, const NewNode& node) = 0;
  virtual Result<Entry> link(InodeId inode, InodeId parent, std::string_view name) = 0;
  virtual Status unlink(InodeId parent, std::string_view name) = 0;
  virtual Status remove_directory(InodeId parent, std::string_view name) = 0;
  virtual Status rename(InodeId old_parent, std::string_view old_name, InodeId new_parent,
                        std::string_view new_name, RenameMode mode) = 0;
  /// Entries after `cookie` (0: from the start), in a stable order; names . and .. are the
  /// caller's.
  virtual Result<std::vector<ListEntry>> list(InodeId directory, std::uint64_t cookie,
                                              std::size_t count_max, bool with_attributes) = 0;
  /// No entry made so far has a larger cookie, every later one has.
  virtual std::uint64_t newest_cookie() const = 0;

  /// An inode stays (even without a name) while it is retained; the last release of an orphan frees
  /// it.
  virtual void retain(InodeId inode, std::uint64_t count = 1) = 0;
  virtual void release(InodeId inode, std::uint64_t count = 1) = 0;
  /// In a cluster, where retaining is for this node only: a handle is opened, and an inode without
  /// a name stays while any node has one open. Returns whether pages of the file that the kernel
  /// kept since an earlier open are still right. Errors: kNotFound, kTimeout.
  virtual Result<bool> open_handle(InodeId inode) = 0;
  virtual void close_handle(InodeId inode) = 0;
  /// What a handle calls itself that was opened just now: a session of this node that ends may take
  /// from it what it had (P4). 0 on a lone node, where nothing does.
  virtual std::uint64_t next_handle() = 0;
  /// Before a read of the handle; where its file is locked here, waits for the lease to be proved.
  /// Errors, until it is closed: kIo (a lock of its file was lost), kStale (the file was);
  /// kTimeout.
  virtual Status check_handle(InodeId inode, std::uint64_t handle) = 0;
  /// Before a change by it; waits until it is known what the session has lost. Errors: as above.
  virtual Status check_change(InodeId inode, std::uint64_t handle) = 0;
  /// The same where a handle asks what became of its bytes, after sync() or flush(). Errors: kIo
  /// and kStale as above, kIo also once where bytes of the file were lost.
  virtual Status check_bytes(InodeId inode, std::uint64_t handle) = 0;
  /// Called by a thread of the engine's own when the kernel's pages of a file have bytes that were
  /// lost: to drop them may wait for requests.
  virtual void set_forget_pages(std::function<void(InodeId)> forget) = 0;

  // Attributes. Errors: kNotFound, kNotPermitted, kFileTooBig, kNoSpace, kReadOnly, kIo.
  virtual Result<Inode> attributes(InodeId inode) = 0;
  /// The same for a read of a handle that is open: it goes on also while a node of a cluster cannot
  /// prove its lease, with what this node knows.
  virtual Result<Inode> attributes_of_open(InodeId inode) = 0;
  /// For so many ns the kernel may keep what is read of the attributes after this call. On a lone
  /// node for ever; of a cluster's node until its lease ends, or `forget` (below) is called. 0: not
  /// at all.
  virtual std::uint64_t keep_attributes(InodeId inode) = 0;
  /// Makes the kernel forget the attributes of an inode that it keeps, and returns when it has
  /// (false: it has no such inode); from a thread of the engine. Before it is set, and after an
  /// empty one was, nothing may be kept.
  virtual void set_forget_attributes(std::function<bool(InodeId)> forget) = 0;
  virtual Result<Inode> set_attributes(InodeId inode, const AttributeChange& change) = 0;
  /// The file was read: atime moves as relatime says (gathered, no wait).
  virtual void touch(InodeId inode) = 0;

  // Extended attributes. Errors: kNoData, kExists, kRange, kTooBig, kNameTooLong, kUnsupported, ...
  virtual Result<std::string> xattr(InodeId inode, std::string_view name) = 0;
  virtual Result<std::vector<std::string>> xattr_names(InodeId inode) = 0;
  virtual Status set_xattr(InodeId inode, std::string_view name, std::string_view value,
                           XattrMode mode, bool clear_setgid = false) = 0;
  virtual Status remove_xattr(InodeId inode, std::string_view name) = 0;

  // Bytes.
  /// Reads into `out`; the count is short only at the end of the file. Holes are zeros.
  /// Errors: kNotFound, kIsDirectory, kCorrupt, kIo.
  virtual Result<std::size_t> read(InodeId inode, std::uint64_t offset, MutableBytes out) = 0;
  /// All bytes or none. Errors: kNotFound, kFileTooBig, kNoSpace, kReadOnly, kTimeout (no room in
  /// time), kIo, kShutdown.
  virtual Status write(InodeId inode, std::uint64_t offset, Bytes bytes,
                       WriteOptions options = {}) = 0;
  /// Takes away what a change of the bytes by somebody without privilege does: set-user-ID, file
  /// capabilities, and set-group-ID where the group may execute or the caller is no member. Before
  /// the bytes come: with them, later, it would undo what is set in between. Returns whether there
  /// was anything. Errors: those of set_attributes().
  virtual Result<bool> clear_privileges(InodeId inode, const GroupTest& is_member) = 0;
  /// The inode's bytes, and every earlier change of the volume, are durable (P3). Errors: kIo,
  /// kTimeout (they are ordered, and durable or not), kShutdown.
  virtual Status sync(InodeId inode) = 0;
  /// A handle is closed: who opens the file later, on any node, sees its bytes (P2). Nothing to do
  /// on a lone node. Errors: those of sync().
  virtual Status flush(InodeId inode) = 0;
  /// Everything is durable. Errors: those of sync().
  virtual Status sync_all() = 0;
  virtual Status allocate(InodeId inode, std::uint64_t offset, std::uint64_t length,
                          AllocateMode mode) = 0;
  /// Shares extents; returns the bytes copied (short at the source's end). Errors: kInvalid
  /// (overlap), ...
  virtual Result<std::uint64_t> clone_range(InodeId source, std::uint64_t source_offset,
                                            InodeId target, std::uint64_t target_offset,
                                            std::uint64_t length) = 0;
  /// lseek(2) SEEK_DATA and SEEK_HOLE. Errors: kNoSuchRange.
  virtual Result<std::uint64_t> seek(InodeId inode, std::uint64_t offset, SeekKind kind) = 0;

  // Locks of a cluster; a lone node has none, and calls nothing of this.
  /// The number of a request that lock() makes next, for cancel_lock(). `done` gets its answer.
  virtual std::uint64_t begin_lock(LockDone done) = 0;
  /// What the owner has of the bytes becomes of this type. Returns when the log has the request,
  /// also if the lock then waits. Answers: kWouldBlock (without `wait`), kDeadlock, kNoLocks,
  /// kNotFound, kInvalid, kTimeout, kIo, kShutdown.
  virtual void lock(std::uint64_t request, const LockRange& range, LockType type, bool wait) = 0;
  /// A signal ends the request's wait, if it is not granted before: its answer tells. Does not
  /// wait; without effect on a request that is answered.
  virtual void cancel_lock(std::uint64_t request) = 0;
  /// Whoever locks the bytes next, on any node, sees what was written (P2). Errors: kNoLocks, and
  /// those of sync(): the lock stays.
  virtual Status unlock(const LockRange& range) = 0;
  /// At a close: all that the owner has on the inode goes, at the latest in the background.
  virtual void drop_locks(InodeId inode, LockKind kind, std::uint64_t owner) = 0;
  /// The first lock that the owner would have to wait for. Errors: kTimeout, kIo.
  virtual Result<std::optional<HeldLock>> lock_in_the_way(const LockRange& range,
                                                          LockType type) = 0;

  virtual Result<SpaceInfo> space() = 0;
  virtual EngineCounters counters() const = 0;
  /// What does not work as well as it may, one line each, until it is cured (P9).
  virtual std::vector<std::string> degraded() const = 0;
  /// Ok, or why every change fails until the store is opened anew.
  virtual Status failure() const = 0;

  // Key-value face. A key is a path without a leading slash ("a/b/c"); directories are made as
  // needed.
  /// Sets the whole value; readers and crashes see the old or the new one, or before the first one
  /// no key. Not durable before sync_all(). Errors: those of names and of write().
  virtual Status put(std::string_view key, Bytes value) = 0;
  virtual Result<std::string> get(std::string_view key) = 0;
  virtual Status remove(std::string_view key) = 0;
  /// Keys that start with `prefix`, in byte order, at most `count_max`, after `after` if it is not
  /// empty.
  virtual Result<std::vector<std::string>> list_keys(std::string_view prefix, std::size_t count_max,
                                                     std::string_view after = {}) = 0;
  /// The three-tier lookup: as get, from the arena if it is hot, else from where it lies. `tier`
  /// tells where the value was found.
  enum class Tier { kHot, kWarm, kCold };
  virtual Result<std::string> hybrid_get(std::string_view key, Tier* tier = nullptr) = 0;

  /// Does what is due of the deferred work (old dirty bytes, cleaning, checkpoint), one bounded
  /// step of each; returns the boot time at which it wants to be called again at the latest.
  /// Thread: one at a time.
  virtual std::uint64_t run_background() = 0;
  /// Called, from any thread, when run_background should be called early. Set before use.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
  /// In a cluster: called when another node has given a directory that is retained here a new name;
  /// this is the old one. From the thread that applies the log: it must not wait, nor call the
  /// engine. {}: not any more, when this returns.
  virtual void set_on_moved(
      std::function<void(InodeId parent, std::string_view name)> on_moved) = 0;

  /// What an operator asks of the node and tells it (engine_admin.h). Lives as long as the engine.
  virtual EngineAdmin& admin() = 0;

  // fsck.
  struct CheckReport {
    std::uint64_t problems = 0, repaired = 0;  ///< repair: of the problems
    std::uint64_t pages_checked = 0, bad_pages = 0;
  };
  struct CheckOptions {
    bool scrub = false;  ///< verify every page of every segment, not only its checksum pages
    std::function<void(const std::string&)> report = [](const std::string&) {};
    std::function<void(std::string_view phase, std::uint64_t done, std::uint64_t total)> progress =
        [](auto, auto, auto) {};
  };
  /// Checks the catalog, the segments and the references between them. On a read-only engine it
  /// judges as recovery would leave the store, and changes nothing. Errors: kIo, kCorrupt.
  virtual Result<CheckReport> check(const CheckOptions& options) = 0;
  /// Mends the catalog of a store that nobody uses, and then recovers the store as open() and
  /// close() do. Tells what it mended; a check() afterwards tells what is left. A crash at any
  /// point leaves a store that can be repaired again. Errors: those of open() and close().
  static Result<CheckReport> repair(Disk& disk, Clock& clock, Random& random, EngineOptions options,
                                    const CheckOptions& check);
};

}  // namespace kvsyncfs
