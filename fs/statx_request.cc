#include "fs/statx_request.h"

#include <linux/fuse.h>
#include <linux/stat.h>
#include <pthread.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

namespace kvsyncfs {

namespace {

// The kernel's protocol from 7.39 on; the headers here are older.
constexpr std::uint32_t kStatxOpcode = 52;
struct SxTime {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  std::int32_t reserved = 0;
};
struct Statx {
  std::uint32_t mask = 0, block_size = 0;
  std::uint64_t attributes = 0;
  std::uint32_t link_count = 0, uid = 0, gid = 0;
  std::uint16_t mode = 0, spare0 = 0;
  std::uint64_t inode = 0, size = 0, blocks = 0, attributes_mask = 0;
  SxTime atime, birth, ctime, mtime;
  std::uint32_t device_major = 0, device_minor = 0;  ///< of a device node
  std::uint32_t unused_major = 0, unused_minor = 0;  ///< of the mount: the kernel knows it
  std::uint64_t spare2[14] = {};
};
struct StatxOut {
  fuse_out_header header{};
  std::uint64_t valid_seconds = 0;
  std::uint32_t valid_nanoseconds = 0, flags = 0;
  std::uint64_t spare[2] = {};
  Statx stat;
};
static_assert(sizeof(Statx) == 256 && sizeof(StatxOut) == 16 + 32 + 256);

SxTime to_sx(const timespec& t) { return {t.tv_sec, static_cast<std::uint32_t>(t.tv_nsec), 0}; }

Statx to_statx(InodeId id, const Inode& inode) {
  const struct stat st = to_stat(id, inode);
  Statx sx;
  sx.mask = STATX_BASIC_STATS | STATX_BTIME;
  sx.block_size = static_cast<std::uint32_t>(st.st_blksize);
  sx.link_count = static_cast<std::uint32_t>(st.st_nlink);
  sx.uid = st.st_uid;
  sx.gid = st.st_gid;
  sx.mode = static_cast<std::uint16_t>(st.st_mode);
  sx.inode = st.st_ino;
  sx.size = static_cast<std::uint64_t>(st.st_size);
  sx.blocks = static_cast<std::uint64_t>(st.st_blocks);
  sx.atime = to_sx(st.st_atim);
  sx.ctime = to_sx(st.st_ctim);
  sx.mtime = to_sx(st.st_mtim);
  sx.birth = {inode.birth.seconds, inode.birth.nanoseconds, 0};
  sx.device_major = major(st.st_rdev);
  sx.device_minor = minor(st.st_rdev);
  return sx;
}

/// libfuse ends its threads by cancelling them where they read requests; here one may hold locks.
class NoCancel {
 public:
  NoCancel() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = 0;
};

}  // namespace

bool answer_statx(Face& face, int fd, const void* request, std::size_t size) {
  fuse_in_header header{};
  if (size < sizeof header) return false;
  std::memcpy(&header, request, sizeof header);
  if (header.opcode != kStatxOpcode) return false;
  const NoCancel no_cancel;
  const auto begin = std::chrono::steady_clock::now();
  const InodeId id{header.nodeid};
  const double keep_seconds = face.keep_seconds(id);
  const auto found = face.engine.attributes(id);
  StatxOut out;
  out.header.unique = header.unique;
  out.header.len = sizeof out;
  if (found) {
    out.valid_seconds = static_cast<std::uint64_t>(keep_seconds);
    out.valid_nanoseconds =
        static_cast<std::uint32_t>((keep_seconds - std::floor(keep_seconds)) * 1e9);
    out.stat = to_statx(id, *found);
  } else {
    out.header.error = -to_errno(found.error().code);
    out.header.len = sizeof out.header;
  }
  iovec piece{&out, out.header.len};
  // A failure means that the caller was interrupted or the connection is gone: nobody waits.
  while (::writev(fd, &piece, 1) < 0 && errno == EINTR) continue;
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  face.metrics.record(OpKind::kGetattr, static_cast<std::uint64_t>(took.count()), !found);
  return true;
}

}  // namespace kvsyncfs
