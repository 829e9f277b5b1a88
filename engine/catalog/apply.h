// What each command does to the catalog. The checks are POSIX's; the caller's permissions are not
// looked at. A returned error means that nothing may be committed. Thread: apply's.
#pragma once

#include "engine/catalog/command_run.h"

namespace kvsyncfs {

// apply_names.cc, apply_rename.cc
Status run_command(CommandRun& run, const CreateCommand& c);
Status run_command(CommandRun& run, const LinkCommand& c);
Status run_command(CommandRun& run, const UnlinkCommand& c);
Status run_command(CommandRun& run, const RenameCommand& c);
// apply_attributes.cc
Status run_command(CommandRun& run, const SetAttrCommand& c);
// apply_data.cc
Status run_command(CommandRun& run, const WriteExtentsCommand& c);
Status run_command(CommandRun& run, const WriteInlineCommand& c);
Status run_command(CommandRun& run, const AllocateCommand& c);
Status run_command(CommandRun& run, const CloneRangeCommand& c);
Status run_command(CommandRun& run, const MoveExtentsCommand& c);
Status run_command(CommandRun& run, const CreateFilledCommand& c);
Status run_command(CommandRun& run, const AppendExtentsCommand& c);
// apply_xattr.cc
Status run_command(CommandRun& run, const SetXattrCommand& c);
Status run_command(CommandRun& run, const RemoveXattrCommand& c);
// apply_segments.cc
Status run_command(CommandRun& run, const OpenSegmentCommand& c);
Status run_command(CommandRun& run, const SealSegmentCommand& c);
Status run_command(CommandRun& run, const DeleteSegmentCommand& c);
Status run_command(CommandRun& run, const OpenPlacedSegmentCommand& c);
Status run_command(CommandRun& run, const SetHoldersCommand& c);
Status run_command(CommandRun& run, const HoldSegmentsCommand& c);
Status run_command(CommandRun& run, const ReleaseHoldCommand& c);
// apply_sessions.cc
Status run_command(CommandRun& run, const JoinCommand& c);
Status run_command(CommandRun& run, const EndCommand& c);
// apply_orphans.cc
Status run_command(CommandRun& run, const ReclaimCommand& c);
Status run_command(CommandRun& run, const HoldOrphansCommand& c);
// apply_locks.cc
Status run_command(CommandRun& run, const AcquireLockCommand& c);
Status run_command(CommandRun& run, const ReleaseLockCommand& c);
Status run_command(CommandRun& run, const CancelLockCommand& c);

// Shared by them.

/// Drops the locks and waits of a session that ends, and grants what others wait for.
Status end_locks(CommandRun& run, SessionId session);
/// Whether anybody has a lock on the inode or waits for one.
Result<bool> is_locked(CommandRun& run, InodeId inode);
/// A name that a directory can hold. Errors: kNameTooLong, kInvalid.
Status check_name(std::string_view name);
/// The directory in which a name is to be looked up or made. Errors: kNotFound, kNotDirectory.
Result<StagedInode*> load_directory(CommandRun& run, InodeId id);
/// One name of `staged` went: link count, ctime, orphan record at 0. Returns true at 0.
bool drop_link(CommandRun& run, StagedInode& staged, const Timestamp& time);
/// A name in `directory` changed.
void touch_directory(StagedInode& directory, const Timestamp& time);
/// Clears set-user-ID, set-group-ID where group-execute is set or `kill_setgid`, and
/// security.capability of anything but a directory.
Status kill_privileges(CommandRun& run, StagedInode& staged, bool kill_setgid);
/// Is there such a name space, and a name in it? Errors: kRange (as Linux), kUnsupported (no such
/// name space), kInvalid (nothing after it).
Status check_xattr_name(std::string_view name);
/// The mode bits of a new inode, and its ACLs: from the parent's default ACL, or else from `umask`.
Status inherit_acl(CommandRun& run, const StagedInode& parent, StagedInode& child,
                   std::uint32_t umask);
/// The access ACL follows the inode's mode.
Status update_acl_after_chmod(CommandRun& run, StagedInode& staged);

}  // namespace kvsyncfs
