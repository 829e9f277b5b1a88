#include "fs/attr.h"

namespace kvsyncfs {

namespace {
timespec to_timespec(const Timestamp& t) { return {t.seconds, static_cast<long>(t.nanoseconds)}; }
constexpr std::uint64_t kBlock = 512;  // unit of st_blocks
}  // namespace

struct stat to_stat(InodeId id, const Inode& inode) {
  struct stat st {};
  st.st_ino = id.value;
  st.st_mode = inode.mode;
  st.st_nlink = inode.link_count;
  st.st_uid = inode.uid;
  st.st_gid = inode.gid;
  st.st_rdev = inode.device;
  st.st_size = static_cast<off_t>(is_symlink(inode) ? inode.target.size() : inode.size);
  st.st_blksize = kPageSize;
  st.st_blocks = static_cast<blkcnt_t>((inode.allocated_bytes + kBlock - 1) / kBlock);
  st.st_atim = to_timespec(inode.atime);
  st.st_mtim = to_timespec(inode.mtime);
  st.st_ctim = to_timespec(inode.ctime);
  return st;
}

}  // namespace kvsyncfs
