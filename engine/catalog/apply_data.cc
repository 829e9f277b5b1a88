// Where the bytes of files lie: extents, inline writes, fallocate, clone, and the cleaner's moves.
#include <algorithm>

#include "engine/catalog/apply.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kRegularType = 0100000;

/// True when [offset, offset + length) is a range of a file and not empty.
bool is_file_range(std::uint64_t offset, std::uint64_t length) {
  return length != 0 && offset <= kFileSizeMax && length <= kFileSizeMax - offset;
}

/// The file that written bytes belong to. Errors: kStale (gone), kInvalid (not a regular file).
Result<StagedInode*> load_written(CommandRun& run, InodeId id) {
  auto file = run.load(id);
  if (!file && file.error().code == Code::kNotFound) return Code::kStale;
  if (!file) return file.error();
  if (!is_regular((*file)->inode)) return Code::kInvalid;
  return *file;
}

/// Errors: kNotFound, kIsDirectory, kInvalid.
Result<StagedInode*> load_regular(CommandRun& run, InodeId id) {
  KVSYNCFS_ASSIGN(StagedInode * file, run.load(id));
  if (is_directory(file->inode)) return Code::kIsDirectory;
  if (!is_regular(file->inode)) return Code::kInvalid;
  return file;
}

template <typename C>
Status finish_write(CommandRun& run, StagedInode& file, std::uint64_t end, const C& c) {
  file.inode.size = std::max(file.inode.size, end);
  if (c.kill_privileges) KVSYNCFS_TRY(kill_privileges(run, file, false));
  if (c.mtime) file.inode.mtime = *c.mtime;
  CommandRun::touch(file, c.time);
  run.result.inode = file.id;
  return {};
}

Status check_extents(const CommandRun& run, std::span<const Extent> extents) {
  for (const Extent& e : extents) {
    if (!is_file_range(e.file_offset, e.length)) return Code::kInvalid;
    if (e.segment == kNoSegment || !run.find_segment(e.segment)) return Code::kStale;
  }
  return {};
}

/// Returns where the last one ends.
Result<std::uint64_t> put_extents(CommandRun& run, StagedInode& file,
                                  std::span<const Extent> extents) {
  if (extents.size() > 1) run.expect_several_edits();
  std::uint64_t end = 0;
  for (const Extent& e : extents) {
    KVSYNCFS_TRY(run.replace(file, e.file_offset, e.length, {&e, 1}));
    end = std::max(end, e.file_end());
  }
  return end;
}

/// One move: the parts of the file that still lie where the cleaner read them.
Status move_extent(CommandRun& run, const MoveExtentsCommand::Move& move) {
  const Extent& from = move.from;
  if (!is_file_range(from.file_offset, from.length)) return Code::kInvalid;
  KVSYNCFS_ASSIGN(auto now, run.extents(move.inode, from.file_offset, from.length));
  for (const Extent& e : now) {
    auto part = cut(e, from.file_offset, from.file_end());
    if (!part || part->segment != from.segment) continue;
    const std::uint64_t into = part->file_offset - from.file_offset;
    if (part->segment_offset != from.segment_offset + into) continue;
    Extent moved{part->file_offset, part->length, move.to_segment, move.to_offset + into};
    run.edit_extents(move.inode,
                     replace_range({&e, 1}, part->file_offset, part->length, {&moved, 1}));
    run.note_change({move.inode, part->file_offset, part->length});
    run.result.moved_bytes += part->length;
  }
  return {};
}

/// Source extents in the target's offsets. Reserved ranges read as zeros and become holes.
std::vector<Extent> shifted(std::span<const Extent> extents, const CloneRangeCommand& c) {
  std::vector<Extent> fresh;
  for (const Extent& e : extents) {
    auto part = cut(e, c.source_offset, c.source_offset + c.length);
    if (!part || part->segment == kNoSegment) continue;
    part->file_offset = part->file_offset - c.source_offset + c.target_offset;
    fresh.push_back(*part);
  }
  return fresh;
}

bool overlap(const CloneRangeCommand& c) {
  return c.source == c.target && c.source_offset < c.target_offset + c.length &&
         c.target_offset < c.source_offset + c.length;
}

}  // namespace

Status run_command(CommandRun& run, const WriteExtentsCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * file, load_written(run, c.inode));
  KVSYNCFS_TRY(check_extents(run, c.extents));
  KVSYNCFS_ASSIGN(const std::uint64_t end, put_extents(run, *file, c.extents));
  return finish_write(run, *file, end, c);
}

Status run_command(CommandRun& run, const AppendExtentsCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * file, load_written(run, c.inode));
  std::vector<Extent> extents;
  std::uint64_t end = file->inode.size;
  for (const auto& piece : c.pieces) {
    if (!is_file_range(end, piece.length)) return Code::kFileTooBig;
    extents.push_back({end, piece.length, piece.segment, piece.segment_offset});
    end += piece.length;
  }
  KVSYNCFS_TRY(check_extents(run, extents));
  if (extents.size() > 1) run.expect_several_edits();
  for (const Extent& e : extents)
    KVSYNCFS_TRY(run.replace(*file, e.file_offset, e.length, {&e, 1}));
  file->inode.size = end;
  file->inode.mtime = c.time;
  CommandRun::touch(*file, c.time);
  run.result.inode = c.inode;
  return {};
}

Status run_command(CommandRun& run, const WriteInlineCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * file, load_written(run, c.inode));
  std::uint64_t end = 0;
  for (const auto& piece : c.pieces) {
    if (!is_file_range(piece.file_offset, piece.bytes.size())) return Code::kInvalid;
    end = std::max<std::uint64_t>(end, piece.file_offset + piece.bytes.size());
  }
  return finish_write(run, *file, end, c);
}

Status run_command(CommandRun& run, const AllocateCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * file, load_regular(run, c.inode));
  if (c.length == 0) return Code::kInvalid;
  if (!is_file_range(c.offset, c.length)) return Code::kFileTooBig;
  const Extent zeros{c.offset, c.length, kNoSegment, 0};
  if (c.mode == AllocateMode::kPunchHole) {
    KVSYNCFS_TRY(run.replace(*file, c.offset, c.length, {}));
  } else if (c.mode == AllocateMode::kZeroRange || c.mode == AllocateMode::kZeroRangeKeepSize) {
    KVSYNCFS_TRY(run.replace(*file, c.offset, c.length, {&zeros, 1}));
  } else {
    KVSYNCFS_ASSIGN(auto old, run.extents(c.inode, c.offset, c.length));
    for (const Extent& hole : reserve_holes(old, c.offset, c.length))
      KVSYNCFS_TRY(run.replace(*file, hole.file_offset, hole.length, {&hole, 1}));
  }
  if (c.mode == AllocateMode::kReserve || c.mode == AllocateMode::kZeroRange)
    file->inode.size = std::max(file->inode.size, c.offset + c.length);
  file->inode.mtime = c.time;
  CommandRun::touch(*file, c.time);
  run.result.inode = c.inode;
  return {};
}

Status run_command(CommandRun& run, const CloneRangeCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * source, load_regular(run, c.source));
  KVSYNCFS_ASSIGN(StagedInode * target, load_regular(run, c.target));
  if (!is_file_range(c.source_offset, c.length)) return Code::kInvalid;
  if (!is_file_range(c.target_offset, c.length)) return Code::kFileTooBig;
  if (c.source_offset + c.length > source->inode.size || overlap(c)) return Code::kInvalid;
  KVSYNCFS_ASSIGN(auto extents, run.extents(c.source, c.source_offset, c.length));
  KVSYNCFS_TRY(run.replace(*target, c.target_offset, c.length, shifted(extents, c)));
  target->inode.size = std::max(target->inode.size, c.target_offset + c.length);
  target->inode.mtime = c.time;
  CommandRun::touch(*target, c.time);
  run.result.inode = c.target;
  return {};
}

Status run_command(CommandRun& run, const MoveExtentsCommand& c) {
  if (c.moves.size() > 1) run.expect_several_edits();
  for (const auto& move : c.moves) {
    if (move.to_segment == kNoSegment || !run.find_segment(move.to_segment)) return Code::kStale;
    KVSYNCFS_TRY(move_extent(run, move));
  }
  return {};
}

Status run_command(CommandRun& run, const CreateFilledCommand& c) {
  if ((c.mode & kTypeMask) != kRegularType) return Code::kInvalid;
  KVSYNCFS_TRY(check_extents(run, c.extents));
  KVSYNCFS_TRY(run_command(
      run, CreateCommand{c.parent, c.name, c.mode, c.umask, c.uid, c.gid, 0, {}, c.time}));
  KVSYNCFS_ASSIGN(StagedInode * file, run.load(run.result.inode));
  KVSYNCFS_ASSIGN(file->inode.size, put_extents(run, *file, c.extents));
  return {};
}

}  // namespace kvsyncfs
