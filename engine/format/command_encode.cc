#include <algorithm>

#include "engine/format/codec.h"
#include "engine/format/command.h"
#include "engine/format/command_tags.h"
#include "engine/format/timestamp_codec.h"

namespace kvsyncfs {

namespace {

void tag(Writer& w, CommandTag t) { w.u8(static_cast<std::uint8_t>(t)); }

void put_extent(Writer& w, const Extent& e) {
  w.u64(e.file_offset);
  w.u64(e.length);
  w.u64(e.segment.value);
  w.u64(e.segment_offset);
}

void put_extents(Writer& w, const std::vector<Extent>& extents) {
  w.u32(static_cast<std::uint32_t>(extents.size()));
  for (const Extent& e : extents) put_extent(w, e);
}

void put_write_flags(Writer& w, const std::optional<Timestamp>& mtime, bool kill_privileges) {
  w.u8(
      static_cast<std::uint8_t>((mtime ? kHasMtime : 0) | (kill_privileges ? kKillPrivileges : 0)));
  if (mtime) put_time(w, *mtime);
}

void put(Writer& w, const CreateCommand& c) {
  tag(w, CommandTag::kCreate);
  w.u64(c.parent.value);
  w.blob(c.name);
  w.u32(c.mode);
  w.u32(c.umask);
  w.u32(c.uid);
  w.u32(c.gid);
  w.u64(c.device);
  w.blob(c.target);
  put_time(w, c.time);
}

void put(Writer& w, const LinkCommand& c) {
  tag(w, CommandTag::kLink);
  w.u64(c.inode.value);
  w.u64(c.parent.value);
  w.blob(c.name);
  put_time(w, c.time);
}

void put(Writer& w, const UnlinkCommand& c) {
  tag(w, CommandTag::kUnlink);
  w.u64(c.parent.value);
  w.blob(c.name);
  w.u8(c.directory);
  put_time(w, c.time);
}

void put(Writer& w, const RenameCommand& c) {
  tag(w, CommandTag::kRename);
  w.u64(c.old_parent.value);
  w.blob(c.old_name);
  w.u64(c.new_parent.value);
  w.blob(c.new_name);
  w.u8(static_cast<std::uint8_t>(c.mode));
  put_time(w, c.time);
}

/// Both bits together stand for kill_setgid: neither is said with the other.
std::uint8_t privilege_flags(const SetAttrCommand& c) {
  if (c.kill_setgid) return kKillPrivileges | kKeepCtime;
  if (c.kill_privileges) return kKillPrivileges;
  return c.keep_ctime ? kKeepCtime : 0;
}

void put(Writer& w, const SetAttrCommand& c) {
  tag(w, CommandTag::kSetAttr);
  w.u64(c.inode.value);
  w.u8(static_cast<std::uint8_t>((c.mode ? kHasMode : 0) | (c.uid ? kHasUid : 0) |
                                 (c.gid ? kHasGid : 0) | (c.size ? kHasSize : 0) |
                                 (c.atime ? kHasAtime : 0) | (c.mtime ? kHasMtime : 0) |
                                 privilege_flags(c)));
  if (c.mode) w.u32(*c.mode);
  if (c.uid) w.u32(*c.uid);
  if (c.gid) w.u32(*c.gid);
  if (c.size) w.u64(*c.size);
  if (c.atime) put_time(w, *c.atime);
  if (c.mtime) put_time(w, *c.mtime);
  put_time(w, c.time);
}

void put(Writer& w, const WriteExtentsCommand& c) {
  tag(w, CommandTag::kWriteExtents);
  w.u64(c.inode.value);
  put_write_flags(w, c.mtime, c.kill_privileges);
  put_time(w, c.time);
  put_extents(w, c.extents);
}

void put(Writer& w, const WriteInlineCommand& c) {
  tag(w, CommandTag::kWriteInline);
  w.u64(c.inode.value);
  put_write_flags(w, c.mtime, c.kill_privileges);
  put_time(w, c.time);
  w.u32(static_cast<std::uint32_t>(c.pieces.size()));
  for (const auto& piece : c.pieces) {
    w.u64(piece.file_offset);
    w.blob(piece.bytes);
  }
}

void put(Writer& w, const AllocateCommand& c) {
  tag(w, CommandTag::kAllocate);
  w.u64(c.inode.value);
  w.u64(c.offset);
  w.u64(c.length);
  w.u8(static_cast<std::uint8_t>(c.mode));
  put_time(w, c.time);
}

void put(Writer& w, const CloneRangeCommand& c) {
  tag(w, CommandTag::kCloneRange);
  w.u64(c.source.value);
  w.u64(c.target.value);
  w.u64(c.source_offset);
  w.u64(c.target_offset);
  w.u64(c.length);
  put_time(w, c.time);
}

void put(Writer& w, const SetXattrCommand& c) {
  tag(w, CommandTag::kSetXattr);
  w.u64(c.inode.value);
  w.blob(c.name);
  w.blob(c.value);
  w.u8(static_cast<std::uint8_t>(c.mode));
  w.u8(c.clear_setgid);
  put_time(w, c.time);
}

void put(Writer& w, const RemoveXattrCommand& c) {
  tag(w, CommandTag::kRemoveXattr);
  w.u64(c.inode.value);
  w.blob(c.name);
  put_time(w, c.time);
}

void put(Writer& w, const ReclaimCommand& c) {
  tag(w, CommandTag::kReclaim);
  w.u64(c.inode.value);
}

void put(Writer& w, const OpenSegmentCommand&) { tag(w, CommandTag::kOpenSegment); }

void put(Writer& w, const SealSegmentCommand& c) {
  tag(w, CommandTag::kSealSegment);
  w.u64(c.segment.value);
  w.u64(c.length);
}

void put(Writer& w, const DeleteSegmentCommand& c) {
  tag(w, CommandTag::kDeleteSegment);
  w.u64(c.segment.value);
}

void put(Writer& w, const MoveExtentsCommand& c) {
  tag(w, CommandTag::kMoveExtents);
  w.u32(static_cast<std::uint32_t>(c.moves.size()));
  for (const auto& m : c.moves) {
    w.u64(m.inode.value);
    put_extent(w, m.from);
    w.u64(m.to_segment.value);
    w.u64(m.to_offset);
  }
}

void put(Writer& w, const JoinCommand& c) {
  tag(w, CommandTag::kJoin);
  w.u64(c.node.value);
  w.u64(c.incarnation.value);
  w.u64(c.features);
  w.u32(c.lease_ms);
}

void put(Writer& w, const EndCommand& c) {
  tag(w, CommandTag::kEnd);
  w.u64(c.node.value);
  w.u64(c.incarnation.value);
}

void put(Writer& w, const HoldOrphansCommand& c) {
  tag(w, CommandTag::kHoldOrphans);
  for (const auto* inodes : {&c.held, &c.released}) {
    w.u32(static_cast<std::uint32_t>(inodes->size()));
    for (const InodeId inode : *inodes) w.u64(inode.value);
  }
}

void put(Writer& w, const AcquireLockCommand& c) {
  tag(w, CommandTag::kAcquireLock);
  w.u64(c.inode.value);
  w.u8(static_cast<std::uint8_t>(c.kind));
  w.u8(static_cast<std::uint8_t>(c.type));
  w.u64(c.owner);
  w.u64(c.start);
  w.u64(c.end);
  w.u32(c.pid);
  w.u8(c.wait);
}

void put(Writer& w, const ReleaseLockCommand& c) {
  tag(w, CommandTag::kReleaseLock);
  w.u64(c.inode.value);
  w.u8(static_cast<std::uint8_t>(c.kind));
  w.u64(c.owner);
  w.u64(c.start);
  w.u64(c.end);
}

void put(Writer& w, const CancelLockCommand& c) {
  tag(w, CommandTag::kCancelLock);
  w.u64(c.inode.value);
  w.u8(static_cast<std::uint8_t>(c.kind));
  w.u64(c.wait);
}

void put(Writer& w, const CreateFilledCommand& c) {
  tag(w, CommandTag::kCreateFilled);
  w.u64(c.parent.value);
  w.blob(c.name);
  w.u32(c.mode);
  w.u32(c.umask);
  w.u32(c.uid);
  w.u32(c.gid);
  put_time(w, c.time);
  put_extents(w, c.extents);
}

void put_nodes(Writer& w, NodeId owner, const std::vector<NodeId>& holders) {
  w.u64(owner.value);
  w.u32(static_cast<std::uint32_t>(holders.size()));
  for (const NodeId holder : holders) w.u64(holder.value);
}

void put(Writer& w, const OpenPlacedSegmentCommand& c) {
  tag(w, CommandTag::kOpenPlacedSegment);
  put_nodes(w, c.owner, c.holders);
}

void put(Writer& w, const SetHoldersCommand& c) {
  tag(w, CommandTag::kSetHolders);
  w.u64(c.segment.value);
  put_nodes(w, c.owner, c.holders);
}

void put(Writer& w, const AppendExtentsCommand& c) {
  tag(w, CommandTag::kAppendExtents);
  w.u64(c.inode.value);
  put_time(w, c.time);
  w.u32(static_cast<std::uint32_t>(c.pieces.size()));
  for (const auto& piece : c.pieces) {
    w.u64(piece.segment.value);
    w.u64(piece.segment_offset);
    w.u64(piece.length);
  }
}

void put(Writer& w, const HoldSegmentsCommand& c) {
  tag(w, CommandTag::kHoldSegments);
  w.blob(c.name);
  put_time(w, c.time);
  put_time(w, c.expires);
}

void put(Writer& w, const ReleaseHoldCommand& c) {
  tag(w, CommandTag::kReleaseHold);
  w.blob(c.name);
  w.u64(c.position.value);
}

}  // namespace

std::uint8_t version_of(const Transaction& transaction) {
  const auto is_newer = [](const Command& c) { return c.index() >= kTagInVersion1Max; };
  const bool newer =
      std::any_of(transaction.commands.begin(), transaction.commands.end(), is_newer);
  return transaction.origin || newer ? 2 : 1;
}

std::string encode(const Transaction& transaction) {
  std::string out;
  Writer w(out);
  const std::uint8_t version = version_of(transaction);
  w.u8(version);
  if (version > 1) {
    const Origin origin = transaction.origin.value_or(Origin{});
    w.u64(origin.node.value);
    w.u64(origin.incarnation.value);
    w.u64(origin.request);
  }
  w.u16(static_cast<std::uint16_t>(transaction.commands.size()));
  for (const Command& command : transaction.commands)
    std::visit([&w](const auto& c) { put(w, c); }, command);
  return out;
}

}  // namespace kvsyncfs
