// Transactions and their commands: what the log carries and apply understands.
//
// A command's meaning never changes; new behaviour is a new command. All checks run at apply. Each
// command is atomic and has a result of its own; the commands of a transaction are applied in
// order, and a crash keeps all of a transaction in the log or nothing of it. Times travel in the
// command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/format/lock_table.h"
#include "engine/format/records.h"

namespace kvsyncfs {

/// create, mkdir, mknod and symlink: the type is in `mode`. Apply gives a set-group-ID directory's
/// group (and, to directories, the bit) to the child and applies the parent's default ACL, or else
/// `umask`.
struct CreateCommand {
  InodeId parent;
  std::string name;
  std::uint32_t mode = 0, umask = 0, uid = 0, gid = 0;
  std::uint64_t device = 0;
  std::string target;  ///< symlinks
  Timestamp time;
};
struct LinkCommand {
  InodeId inode, parent;
  std::string name;
  Timestamp time;
};
/// unlink (directory false) and rmdir (true). An inode at link count 0 becomes an orphan.
struct UnlinkCommand {
  InodeId parent;
  std::string name;
  bool directory = false;
  Timestamp time;
};
enum class RenameMode : std::uint8_t { kReplace = 0, kNoReplace = 1, kExchange = 2 };
struct RenameCommand {
  InodeId old_parent;
  std::string old_name;
  InodeId new_parent;
  std::string new_name;
  RenameMode mode = RenameMode::kReplace;
  Timestamp time;
};
/// Only what is set changes; ctime always becomes `time`. A size cuts or extends (extended: a
/// hole).
struct SetAttrCommand {
  InodeId inode;
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<std::uint64_t> size;
  std::optional<Timestamp> atime, mtime;
  bool kill_privileges = false;  ///< clear set-user-ID, and set-group-ID where group-execute is set
  bool kill_setgid = false;      ///< with it: set-group-ID in any case, the caller is no member
  bool keep_ctime = false;       ///< a gathered atime: ctime and the change counter stay
  Timestamp time;
};
/// Bytes already on the owner's disk become the file's. Size becomes max(size, end of the last
/// extent); mtime (if set), ctime as given; an inode that is gone: kStale, nothing is referenced.
struct WriteExtentsCommand {
  InodeId inode;
  std::vector<Extent> extents;
  std::optional<Timestamp> mtime;
  bool kill_privileges = false;
  Timestamp time;
};
/// Small bytes that travel in the log of a lone node (one fsync, one disk write). Apply changes
/// size and times only; the engine keeps the bytes in its write buffer until a WriteExtents puts
/// them in place.
struct WriteInlineCommand {
  struct Piece {
    std::uint64_t file_offset = 0;
    std::string bytes;
  };
  InodeId inode;
  std::vector<Piece> pieces;
  std::optional<Timestamp> mtime;
  bool kill_privileges = false;
  Timestamp time;
};
enum class AllocateMode : std::uint8_t {
  kReserve = 0,          ///< holes become reserved; size grows
  kReserveKeepSize = 1,  ///< the same, size stays
  kPunchHole = 2,        ///< range becomes a hole, size stays
  kZeroRange = 3,        ///< range becomes reserved, size grows
  kZeroRangeKeepSize = 4,
};
struct AllocateCommand {
  InodeId inode;
  std::uint64_t offset = 0, length = 0;
  AllocateMode mode = AllocateMode::kReserve;
  Timestamp time;
};
/// copy_file_range by sharing extents: dst range becomes what src range is now (holes too).
/// The ranges lie inside src and do not overlap.
struct CloneRangeCommand {
  InodeId source, target;
  std::uint64_t source_offset = 0, target_offset = 0, length = 0;
  Timestamp time;
};
enum class XattrMode : std::uint8_t { kSet = 0, kCreate = 1, kReplace = 2 };
/// system.posix_acl_access also sets the mode bits, and one that equals mode bits is not stored.
struct SetXattrCommand {
  InodeId inode;
  std::string name, value;
  XattrMode mode = XattrMode::kSet;
  bool clear_setgid = false;
  Timestamp time;
};
struct RemoveXattrCommand {
  InodeId inode;
  std::string name;
  Timestamp time;
};
/// Frees an orphan: at most kReclaimExtentsMax extents a command; result.more says to send another.
/// kBusy while a session that lives holds it or a lock on it.
struct ReclaimCommand {
  InodeId inode;
};
/// A new open segment; its id is result.segment.
struct OpenSegmentCommand {};
struct SealSegmentCommand {
  SegmentId segment;
  std::uint64_t length = 0;  ///< bytes
};
/// Only a sealed segment without live bytes that no hold keeps: else kBusy.
struct DeleteSegmentCommand {
  SegmentId segment;
};
/// The cleaner's moves: each applies only where the inode's extent bytes still are the old ones.
struct MoveExtentsCommand {
  struct Move {
    InodeId inode;
    Extent from;  ///< as it was when it was read
    SegmentId to_segment;
    std::uint64_t to_offset = 0;
  };
  std::vector<Move> moves;
};

/// A node's daemon begins a session: the node is up to date as far as here and acknowledges what
/// comes. Said again it is the same session. Errors: kInvalid (a zero), kBusy (the node's earlier
/// session has not ended), kFenced (this incarnation has ended, or a later one came), kTooBig
/// (kSessionsMax).
struct JoinCommand {
  NodeId node;
  Incarnation incarnation;  ///< greater than all earlier ones of the node
  std::uint64_t features = 0;
  std::uint32_t lease_ms = 0;
};
/// Ends a session; all behind it from that incarnation is dropped. Any node may append it, on the
/// log's condition that the incarnation can append nothing any more. Said again it changes nothing;
/// one that never joined cannot join any more. Errors: kInvalid, kTooBig, kBusy (an earlier session
/// of the node has not ended).
struct EndCommand {
  NodeId node;
  Incarnation incarnation;
};

/// What its session says of orphans, with an acknowledgement: it holds some of them open and others
/// not. One that nobody holds may be reclaimed. An inode that is no orphan, or that the session has
/// released, is passed over. Errors: kInvalid (of no session).
struct HoldOrphansCommand {
  std::vector<InodeId> held, released;
};

/// Locks bytes for an owner of its session; what the owner has there becomes of this type. A flock
/// covers all bytes. With a lock of another owner in the way: kWouldBlock, or with `wait` it queues
/// (result.wait) until it is granted, cancelled or its session ends; one that would close a cycle
/// of POSIX locks: kDeadlock. A flock that queues lets its former lock go, one that is refused
/// keeps it. Errors: also kInvalid (of no session, a range), kNotFound (the inode), kNoLocks.
struct AcquireLockCommand {
  InodeId inode;
  LockKind kind = LockKind::kPosix;
  LockType type = LockType::kShared;
  std::uint64_t owner = 0;
  std::uint64_t start = 0, end = kLockEndMax;  ///< both included
  std::uint32_t pid = 0;
  bool wait = false;
};
/// Unlocks bytes of an owner of its session; locked or not. Errors: kInvalid, kNoLocks (a lock
/// would be split).
struct ReleaseLockCommand {
  InodeId inode;
  LockKind kind = LockKind::kPosix;
  std::uint64_t owner = 0;
  std::uint64_t start = 0, end = kLockEndMax;
};
/// A signal ends a wait of its session. Errors: kInvalid, kNotFound (it waits no more: granted).
struct CancelLockCommand {
  InodeId inode;
  LockKind kind = LockKind::kPosix;
  std::uint64_t wait = 0;  ///< result.wait of the AcquireLock
};

/// A new regular file that has its bytes from the start: they are on the owner's disk already. Size
/// is the end of the last extent; the rest is as a Create does it. Errors: also kInvalid (another
/// type, a range), kStale (a segment that is gone).
struct CreateFilledCommand {
  InodeId parent;
  std::string name;
  std::uint32_t mode = 0, umask = 0, uid = 0, gid = 0;
  Timestamp time;
  std::vector<Extent> extents;
};
/// A new open segment of a cluster; its id is result.segment. Errors: kInvalid (the owner is not
/// among the holders, a zero, one twice, none or more than kHoldersMax).
struct OpenPlacedSegmentCommand {
  NodeId owner;
  std::vector<NodeId> holders;
};
/// From now on these have the segment's bytes, whoever had them before. Errors: kNotFound, and
/// those of OpenPlacedSegment.
struct SetHoldersCommand {
  SegmentId segment;
  NodeId owner;
  std::vector<NodeId> holders;
};
/// Bytes already on their holders' disks come to the end of a file, wherever that is: O_APPEND of a
/// cluster. The file's end afterwards is result.attributes.size. Errors: kStale (the inode or a
/// segment is gone), kInvalid, kFileTooBig.
struct AppendExtentsCommand {
  struct Piece {
    SegmentId segment;
    std::uint64_t segment_offset = 0, length = 0;
  };
  InodeId inode;
  std::vector<Piece> pieces;
  Timestamp time;  ///< becomes mtime and ctime
};
/// From now on no segment that there is at this position is deleted, whatever becomes of its bytes:
/// they belong to a catalog that was saved. A name is one as is_cluster_name() says. Errors:
/// kInvalid, kExists (the name stands for another hold), kTooBig (kHoldsMax).
struct HoldSegmentsCommand {
  std::string name;
  Timestamp time, expires;
};
/// Ends the hold of that name that began at the position. Errors: kNotFound.
struct ReleaseHoldCommand {
  std::string name;
  Position position;
};

using Command =
    std::variant<CreateCommand, LinkCommand, UnlinkCommand, RenameCommand, SetAttrCommand,
                 WriteExtentsCommand, WriteInlineCommand, AllocateCommand, CloneRangeCommand,
                 SetXattrCommand, RemoveXattrCommand, ReclaimCommand, OpenSegmentCommand,
                 SealSegmentCommand, DeleteSegmentCommand, MoveExtentsCommand, JoinCommand,
                 EndCommand, HoldOrphansCommand, AcquireLockCommand, ReleaseLockCommand,
                 CancelLockCommand, CreateFilledCommand, OpenPlacedSegmentCommand,
                 SetHoldersCommand, AppendExtentsCommand, HoldSegmentsCommand, ReleaseHoldCommand>;

inline constexpr std::uint32_t kReclaimExtentsMax = 4096;
inline constexpr std::size_t kLocksPerFileMax = 4096;   ///< of one kind, waits included
inline constexpr std::size_t kDeadlockOwnersMax = 256;  ///< that a search looks at
inline constexpr std::size_t kSessionsMax = 1024;       ///< nodes that ever had one
inline constexpr std::size_t kHoldsMax = 64;            ///< at a time

/// Who sent a transaction. Apply drops it where the session does not live, or has had a request of
/// this number or a higher one: so a request that is sent again is applied once.
struct Origin {
  NodeId node;
  Incarnation incarnation;
  std::uint64_t request = 0;  ///< from 1, growing in the session in the order of its appends
  bool operator==(const Origin&) const = default;
};

/// One entry of the log. At most kCommandsPerTransactionMax commands.
struct Transaction {
  std::vector<Command> commands;
  std::optional<Origin> origin = {};  ///< nothing: of no session, as all of a lone node
};

std::string encode(const Transaction& transaction);
Result<Transaction> decode_transaction(std::string_view bytes);  ///< errors: kCorrupt, kNewerFormat

}  // namespace kvsyncfs
