// ioctl: what lsattr(1), cp(1) and exportfs ask of any file system.
#include <linux/fs.h>

#include "fs/ops/op.h"

namespace kvsyncfs {

namespace {

void control(fuse_req_t req, fuse_ino_t, unsigned command, void*, fuse_file_info*, unsigned,
             const void*, std::size_t, std::size_t out_size) {
  Op op(req, OpKind::kIoctl);
  // No inode flag is kept, and a number never has a second inode, so both
  // answers are constants.
  constexpr long kFlags = 0, kGeneration = 1;
  const bool is_flags = command == FS_IOC_GETFLAGS;
  if (!is_flags && command != FS_IOC_GETVERSION) return op.error(ENOTTY);
  // The commands are defined for long; the kernel and programs pass an int.
  if (out_size != sizeof(int) && out_size != sizeof(long)) return op.error(ENOTTY);
  fuse_reply_ioctl(req, 0, is_flags ? &kFlags : &kGeneration, out_size);
}

}  // namespace

void add_ioctl_ops(fuse_lowlevel_ops& ops) { ops.ioctl = control; }

}  // namespace kvsyncfs
