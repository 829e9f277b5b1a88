#include <algorithm>

#include "engine/format/codec.h"
#include "engine/format/command.h"
#include "engine/format/command_tags.h"
#include "engine/format/timestamp_codec.h"

namespace kvsyncfs {

namespace {

InodeId get_inode(Reader& r) { return {r.u64()}; }
SegmentId get_segment(Reader& r) { return {r.u64()}; }

bool get_bool(Reader& r) {
  std::uint8_t v = r.u8();
  if (v > 1) r.fail();
  return v == 1;
}

template <typename E>
E get_enum(Reader& r, E max) {
  std::uint8_t v = r.u8();
  if (v > static_cast<std::uint8_t>(max)) return r.fail(), E{};
  return static_cast<E>(v);
}

Extent get_extent(Reader& r) {
  Extent e;
  e.file_offset = r.u64();
  e.length = r.u64();
  e.segment = get_segment(r);
  e.segment_offset = r.u64();
  return e;
}

/// Reads a count and then that many items. The count is believed only as far as bytes are there for
/// it (an item has at least `size_min` bytes), so that a wrong one cannot make us reserve memory.
template <typename T, typename F>
void get_list(Reader& r, std::vector<T>& out, std::size_t size_min, F get) {
  std::uint32_t count = r.u32();
  if (count > r.left() / size_min) return r.fail();
  out.reserve(count);
  for (std::uint32_t i = 0; i < count && r.ok(); ++i) out.push_back(get(r));
}

template <typename C>
void get_write_flags(Reader& r, C& c) {
  std::uint8_t flags = r.u8();
  if ((flags & ~(kHasMtime | kKillPrivileges)) != 0) r.fail();
  if ((flags & kHasMtime) != 0) c.mtime = get_time(r);
  c.kill_privileges = (flags & kKillPrivileges) != 0;
  c.time = get_time(r);
}

void get(Reader& r, CreateCommand& c) {
  c.parent = get_inode(r);
  c.name = r.blob();
  c.mode = r.u32();
  c.umask = r.u32();
  c.uid = r.u32();
  c.gid = r.u32();
  c.device = r.u64();
  c.target = r.blob();
  c.time = get_time(r);
}

void get(Reader& r, LinkCommand& c) {
  c.inode = get_inode(r);
  c.parent = get_inode(r);
  c.name = r.blob();
  c.time = get_time(r);
}

void get(Reader& r, UnlinkCommand& c) {
  c.parent = get_inode(r);
  c.name = r.blob();
  c.directory = get_bool(r);
  c.time = get_time(r);
}

void get(Reader& r, RenameCommand& c) {
  c.old_parent = get_inode(r);
  c.old_name = r.blob();
  c.new_parent = get_inode(r);
  c.new_name = r.blob();
  c.mode = get_enum(r, RenameMode::kExchange);
  c.time = get_time(r);
}

void get(Reader& r, SetAttrCommand& c) {
  c.inode = get_inode(r);
  std::uint8_t flags = r.u8();
  if ((flags & kHasMode) != 0) c.mode = r.u32();
  if ((flags & kHasUid) != 0) c.uid = r.u32();
  if ((flags & kHasGid) != 0) c.gid = r.u32();
  if ((flags & kHasSize) != 0) c.size = r.u64();
  if ((flags & kHasAtime) != 0) c.atime = get_time(r);
  if ((flags & kHasMtime) != 0) c.mtime = get_time(r);
  c.kill_privileges = (flags & kKillPrivileges) != 0;
  const bool has_ctime_bit = (flags & kKeepCtime) != 0;
  c.kill_setgid = c.kill_privileges && has_ctime_bit;
  c.keep_ctime = !c.kill_privileges && has_ctime_bit;
  c.time = get_time(r);
}

void get(Reader& r, WriteExtentsCommand& c) {
  c.inode = get_inode(r);
  get_write_flags(r, c);
  get_list(r, c.extents, 32, get_extent);
}

void get(Reader& r, WriteInlineCommand& c) {
  c.inode = get_inode(r);
  get_write_flags(r, c);
  get_list(r, c.pieces, 12, [](Reader& in) {
    WriteInlineCommand::Piece piece;
    piece.file_offset = in.u64();
    piece.bytes = in.blob();
    return piece;
  });
}

void get(Reader& r, AllocateCommand& c) {
  c.inode = get_inode(r);
  c.offset = r.u64();
  c.length = r.u64();
  c.mode = get_enum(r, AllocateMode::kZeroRangeKeepSize);
  c.time = get_time(r);
}

void get(Reader& r, CloneRangeCommand& c) {
  c.source = get_inode(r);
  c.target = get_inode(r);
  c.source_offset = r.u64();
  c.target_offset = r.u64();
  c.length = r.u64();
  c.time = get_time(r);
}

void get(Reader& r, SetXattrCommand& c) {
  c.inode = get_inode(r);
  c.name = r.blob();
  c.value = r.blob();
  c.mode = get_enum(r, XattrMode::kReplace);
  c.clear_setgid = get_bool(r);
  c.time = get_time(r);
}

void get(Reader& r, RemoveXattrCommand& c) {
  c.inode = get_inode(r);
  c.name = r.blob();
  c.time = get_time(r);
}

void get(Reader& r, ReclaimCommand& c) { c.inode = get_inode(r); }

void get(Reader&, OpenSegmentCommand&) {}

void get(Reader& r, SealSegmentCommand& c) {
  c.segment = get_segment(r);
  c.length = r.u64();
}

void get(Reader& r, DeleteSegmentCommand& c) { c.segment = get_segment(r); }

void get(Reader& r, MoveExtentsCommand& c) {
  get_list(r, c.moves, 56, [](Reader& in) {
    MoveExtentsCommand::Move m;
    m.inode = get_inode(in);
    m.from = get_extent(in);
    m.to_segment = get_segment(in);
    m.to_offset = in.u64();
    return m;
  });
}

void get(Reader& r, JoinCommand& c) {
  c.node.value = r.u64();
  c.incarnation.value = r.u64();
  c.features = r.u64();
  c.lease_ms = r.u32();
}

void get(Reader& r, EndCommand& c) {
  c.node.value = r.u64();
  c.incarnation.value = r.u64();
}

void get(Reader& r, HoldOrphansCommand& c) {
  get_list(r, c.held, 8, get_inode);
  get_list(r, c.released, 8, get_inode);
}

template <typename E>
E get_enum_from_1(Reader& r, E max) {
  const E value = get_enum(r, max);
  if (value == E{}) r.fail();
  return value;
}

void get(Reader& r, AcquireLockCommand& c) {
  c.inode = get_inode(r);
  c.kind = get_enum_from_1(r, LockKind::kPosix);
  c.type = get_enum_from_1(r, LockType::kExclusive);
  c.owner = r.u64();
  c.start = r.u64();
  c.end = r.u64();
  c.pid = r.u32();
  c.wait = get_bool(r);
}

void get(Reader& r, ReleaseLockCommand& c) {
  c.inode = get_inode(r);
  c.kind = get_enum_from_1(r, LockKind::kPosix);
  c.owner = r.u64();
  c.start = r.u64();
  c.end = r.u64();
}

void get(Reader& r, CancelLockCommand& c) {
  c.inode = get_inode(r);
  c.kind = get_enum_from_1(r, LockKind::kPosix);
  c.wait = r.u64();
}

void get(Reader& r, CreateFilledCommand& c) {
  c.parent = get_inode(r);
  c.name = r.blob();
  c.mode = r.u32();
  c.umask = r.u32();
  c.uid = r.u32();
  c.gid = r.u32();
  c.time = get_time(r);
  get_list(r, c.extents, 32, get_extent);
}

void get_nodes(Reader& r, NodeId& owner, std::vector<NodeId>& holders) {
  owner.value = r.u64();
  get_list(r, holders, 8, [](Reader& in) { return NodeId{in.u64()}; });
}

void get(Reader& r, OpenPlacedSegmentCommand& c) { get_nodes(r, c.owner, c.holders); }

void get(Reader& r, SetHoldersCommand& c) {
  c.segment = get_segment(r);
  get_nodes(r, c.owner, c.holders);
}

void get(Reader& r, AppendExtentsCommand& c) {
  c.inode = get_inode(r);
  c.time = get_time(r);
  get_list(r, c.pieces, 24, [](Reader& in) {
    AppendExtentsCommand::Piece piece;
    piece.segment = get_segment(in);
    piece.segment_offset = in.u64();
    piece.length = in.u64();
    return piece;
  });
}

void get(Reader& r, HoldSegmentsCommand& c) {
  c.name = r.blob();
  c.time = get_time(r);
  c.expires = get_time(r);
}

void get(Reader& r, ReleaseHoldCommand& c) {
  c.name = r.blob();
  c.position.value = r.u64();
}

std::optional<Origin> get_origin(Reader& r) {
  Origin origin;
  origin.node.value = r.u64();
  origin.incarnation.value = r.u64();
  origin.request = r.u64();
  if (origin == Origin{}) return std::nullopt;
  if (origin.node.value == 0 || origin.incarnation.value == 0 || origin.request == 0) r.fail();
  return origin;
}

// The tag of a command is one more than its place in the variant; the encoder's tags are fixed
// numbers, so this ties the two together.
static_assert(std::variant_size_v<Command> == static_cast<std::size_t>(CommandTag::kReleaseHold));

template <std::size_t index = 0>
bool get_tagged(Reader& r, std::size_t tag, std::vector<Command>& out) {
  if constexpr (index < std::variant_size_v<Command>) {
    if (tag != index + 1) return get_tagged<index + 1>(r, tag, out);
    get(r, std::get<index>(out.emplace_back(std::in_place_index<index>)));
    return true;
  } else {
    return false;
  }
}

}  // namespace

Result<Transaction> decode_transaction(std::string_view bytes) {
  Reader r(bytes);
  std::uint8_t version = r.u8();
  if (!r.ok() || version == 0) return Error{Code::kCorrupt, "transaction: no version"};
  if (version > kTransactionVersion) return Error{Code::kNewerFormat, "transaction: newer version"};
  Transaction transaction;
  if (version > 1) transaction.origin = get_origin(r);
  std::uint16_t count = r.u16();
  if (!r.ok() || count > kCommandsPerTransactionMax)
    return Error{Code::kCorrupt, "transaction: bad command count"};
  transaction.commands.reserve(std::min<std::size_t>(count, r.left()));
  for (std::uint16_t i = 0; i < count; ++i) {
    std::uint8_t tag = r.u8();
    if (!r.ok() || tag == 0) return Error{Code::kCorrupt, "transaction: cut short"};
    if ((version == 1 && tag > kTagInVersion1Max) || !get_tagged(r, tag, transaction.commands))
      return Error{Code::kNewerFormat, "transaction: unknown command"};
    if (!r.ok()) return Error{Code::kCorrupt, "transaction: bad command"};
  }
  if (!r.done()) return Error{Code::kCorrupt, "transaction: bytes left over"};
  if (version != version_of(transaction))
    return Error{Code::kCorrupt, "transaction: not the version of what it says"};
  return transaction;
}

}  // namespace kvsyncfs
