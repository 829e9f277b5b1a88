// Locks of a cluster: fcntl(2) and flock(2). On a lone node the kernel does not ask.
#include <fcntl.h>
#include <sys/file.h>

#include "fs/ops/op.h"
#include "fs/session.h"

namespace kvsyncfs {

namespace {

LockRange range_of(fuse_ino_t ino, const fuse_file_info& fi, const struct flock& lock) {
  LockRange range;
  range.inode = id(ino);
  range.kind = LockKind::kPosix;
  range.owner = fi.lock_owner;
  range.start = static_cast<std::uint64_t>(lock.l_start);
  if (lock.l_len != 0) range.end = range.start + static_cast<std::uint64_t>(lock.l_len) - 1;
  range.pid = static_cast<std::uint32_t>(lock.l_pid);
  return range;
}

LockType type_of(const struct flock& lock) {
  return lock.l_type == F_WRLCK ? LockType::kExclusive : LockType::kShared;
}

/// From a thread of the engine's, in which no request is waited for: what the kernel has to write
/// back before it drops a page comes in through the session's own threads.
void answer(fuse_req_t req, Face& face, InodeId inode, const LockAnswer& result) {
  if (result.interrupted || !result.status) {
    fuse_reply_err(req, result.interrupted ? EINTR : to_errno(result.status.error().code));
    return;
  }
  if (result.pages_may_be_old) face.session->forget_pages(inode);
  fuse_reply_err(req, 0);
}

/// libfuse calls this with a lock of the request's held, maybe when the request has been answered:
/// it may not reply, and `request` is a number.
void interrupt(fuse_req_t req, void* request) {
  static_cast<Face*>(fuse_req_userdata(req))
      ->engine.cancel_lock(reinterpret_cast<std::uintptr_t>(request));
}

/// From lock() on the request may have been answered, and be gone.
void acquire(Op& op, const LockRange& range, LockType type, bool wait) {
  const fuse_req_t req = op.request();
  Face& face = op.face();
  Engine& engine = op.engine();
  const std::uint64_t request = engine.begin_lock(
      [req, &face, inode = range.inode, gate = face.late_replies](const LockAnswer& result) {
        gate->enter([&] { answer(req, face, inode, result); });
      });
  if (wait) fuse_req_interrupt_func(req, interrupt, reinterpret_cast<void*>(request));
  engine.lock(request, range, type, wait);
}

/// One that was lost meanwhile was no lock to the end.
Status unlock(Engine& engine, const LockRange& range, const fuse_file_info& fi) {
  KVSYNCFS_TRY(engine.unlock(range));
  return engine.check_handle(range.inode, fi.fh);
}

void set_lock(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, struct flock* lock, int sleep) {
  Op op(req, OpKind::kSetlk);
  const LockRange range = range_of(ino, *fi, *lock);
  if (lock->l_type == F_UNLCK) return op.done(unlock(op.engine(), range, *fi));
  if (const Status mine = op.engine().check_change(range.inode, fi->fh); !mine)
    return op.error(mine.error());
  op.face().handle_locks.took(fi->fh, id(ino), range.owner);
  acquire(op, range, type_of(*lock), sleep != 0);
}

void get_lock(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, struct flock* lock) {
  Op op(req, OpKind::kGetlk);
  const auto held = op.engine().lock_in_the_way(range_of(ino, *fi, *lock), type_of(*lock));
  if (!held) return op.error(held.error());
  struct flock out = *lock;
  out.l_type = F_UNLCK;
  if (const auto& found = *held) {
    out.l_type = found->type == LockType::kExclusive ? F_WRLCK : F_RDLCK;
    out.l_whence = SEEK_SET;
    out.l_start = static_cast<off_t>(found->start);
    out.l_len = found->end == kLockEndMax ? 0 : static_cast<off_t>(found->end - found->start + 1);
    out.l_pid = static_cast<pid_t>(found->pid);
  }
  fuse_reply_lock(req, &out);
}

void lock_file(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, int what) {
  Op op(req, OpKind::kFlock);
  LockRange range;
  range.inode = id(ino);
  range.kind = LockKind::kFlock;
  range.owner = fi->fh;  // the kernel's name for it may come again before RELEASE has come
  if ((what & LOCK_UN) != 0) return op.done(unlock(op.engine(), range, *fi));
  if (const Status mine = op.engine().check_change(range.inode, fi->fh); !mine)
    return op.error(mine.error());
  const LockType type = (what & LOCK_EX) != 0 ? LockType::kExclusive : LockType::kShared;
  acquire(op, range, type, (what & LOCK_NB) == 0);
}

}  // namespace

void add_lock_ops(fuse_lowlevel_ops& ops) {
  ops.getlk = get_lock;
  ops.setlk = set_lock;
  ops.flock = lock_file;
}

}  // namespace kvsyncfs
