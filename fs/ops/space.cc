// Space: fallocate, copy_file_range, lseek, statfs.
#include <linux/falloc.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "fs/ops/op.h"

namespace kvsyncfs {

namespace {

std::optional<AllocateMode> to_mode(int flags) {
  switch (flags) {
    case 0:
      return AllocateMode::kReserve;
    case FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kReserveKeepSize;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kPunchHole;
    case FALLOC_FL_ZERO_RANGE:
      return AllocateMode::kZeroRange;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kZeroRangeKeepSize;
    default:
      return {};
  }
}

/// The kernel leaves it to the daemon; that root keeps the bits stands for CAP_FSETID, which these
/// requests do not tell.
Status clear_privileges_of_user(Op& op, InodeId inode) {
  return op.context().uid == 0 ? Status{} : clear_privileges(op, inode);
}

void allocate(fuse_req_t req, fuse_ino_t ino, int flags, off_t offset, off_t length,
              fuse_file_info* fi) {
  Op op(req, OpKind::kFallocate);
  if (const Status mine = op.engine().check_change(id(ino), fi->fh); !mine)
    return op.error(mine.error());
  const auto mode = to_mode(flags);
  if (!mode) return op.error(EOPNOTSUPP);
  Status done = op.engine().allocate(id(ino), static_cast<std::uint64_t>(offset),
                                     static_cast<std::uint64_t>(length), *mode);
  if (done) done = clear_privileges_of_user(op, id(ino));
  op.done(done);
}

void copy_range(fuse_req_t req, fuse_ino_t source, off_t source_offset, fuse_file_info* from,
                fuse_ino_t target, off_t target_offset, fuse_file_info* to, std::size_t length,
                int flags) {
  Op op(req, OpKind::kCopyFileRange);
  if (const Status mine = op.engine().check_change(id(target), to->fh); !mine)
    return op.error(mine.error());
  if (const Status mine = op.engine().check_handle(id(source), from->fh); !mine)
    return op.error(mine.error());
  if (flags != 0) return op.error(EINVAL);
  // The reply has 32 bits for the count; the caller asks again for the rest.
  constexpr std::uint64_t kReplyMax = 1u << 30;
  const auto copied = op.engine().clone_range(id(source), static_cast<std::uint64_t>(source_offset),
                                              id(target), static_cast<std::uint64_t>(target_offset),
                                              std::min<std::uint64_t>(length, kReplyMax));
  if (!copied) return op.error(copied.error());
  if (const Status cleared = clear_privileges_of_user(op, id(target)); !cleared)
    return op.error(cleared.error());
  fuse_reply_write(req, *copied);
}

void seek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info*) {
  Op op(req, OpKind::kLseek);
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return op.error(EINVAL);
  const auto found = op.engine().seek(id(ino), static_cast<std::uint64_t>(offset),
                                      whence == SEEK_DATA ? SeekKind::kData : SeekKind::kHole);
  if (!found) return op.error(found.error());
  fuse_reply_lseek(req, static_cast<off_t>(*found));
}

void stat_fs(fuse_req_t req, fuse_ino_t) {
  Op op(req, OpKind::kStatfs);
  const auto space = op.engine().space();
  if (!space) return op.error(space.error());
  struct statvfs st {};
  st.f_bsize = st.f_frsize = kPageSize;
  st.f_blocks = space->total_bytes / kPageSize;
  st.f_bfree = space->free_bytes / kPageSize;
  st.f_bavail = space->available_bytes / kPageSize;
  st.f_files = space->total_inodes;
  st.f_ffree = st.f_favail = space->free_inodes;
  st.f_namemax = kNameSizeMax;
  fuse_reply_statfs(req, &st);
}

}  // namespace

void add_space_ops(fuse_lowlevel_ops& ops) {
  ops.fallocate = allocate;
  ops.copy_file_range = copy_range;
  ops.lseek = seek;
  ops.statfs = stat_fs;
}

}  // namespace kvsyncfs
