// Bytes: open, create, read, write, flush, release, fsync.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "fs/ops/op.h"
#include "fs/request_flags.h"

namespace kvsyncfs {

namespace {

/// Bytes that are appended lie where the log puts them, so the kernel must not keep them where it
/// takes the end of the file to be. Whoever bypasses the kernel's pages does so all the way: else
/// the kernel would ask for the file's attributes before each read.
Status open_in_cluster(Face& face, InodeId inode, fuse_file_info& fi) {
  KVSYNCFS_ASSIGN(const bool keep, face.engine.open_handle(inode));
  fi.fh = face.engine.next_handle();
  fi.keep_cache = keep;
  fi.direct_io =
      (fi.flags & O_APPEND) != 0 || (face.maps_direct_files && (fi.flags & O_DIRECT) != 0);
  return {};
}

/// ARCHITECTURE, "Nothing is opened".
void open_file(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Op op(req, OpKind::kOpen);
  if (!op.face().clustered) return op.unimplemented();
  if (const Status opened = open_in_cluster(op.face(), id(ino), *fi); !opened)
    return op.error(opened.error());
  if (fuse_reply_open(req, fi) != 0) op.engine().close_handle(id(ino));
}

void create_file(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
                 fuse_file_info* fi) {
  Op op(req, OpKind::kCreate);
  const NewNode node = new_node(op.context(), (mode & 07777) | S_IFREG);
  const auto created = op.engine().create(id(parent), name, node);
  // Another node made the name since the kernel asked for it: on ESTALE the kernel asks again, and
  // opens what is there as what it is, with its permissions.
  const bool again = !created && created.error().code == Code::kExists && op.face().clustered &&
                     (fi->flags & O_EXCL) == 0;
  if (again) return op.error(ESTALE);
  if (!created) return op.error(created.error());
  fi->keep_cache = 1;
  if (op.face().clustered)
    if (const Status opened = open_in_cluster(op.face(), created->inode, *fi); !opened)
      return op.error(opened.error());
  const fuse_entry_param e = to_entry(op.face(), created->inode, created->attributes);
  op.engine().retain(created->inode);
  if (fuse_reply_create(req, &e, fi) == 0) return;
  if (op.face().clustered) op.engine().close_handle(created->inode);
  op.engine().release(created->inode);
}

void read_file(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info* fi) {
  Op op(req, OpKind::kRead);
  if (const Status mine = op.engine().check_handle(id(ino), fi->fh); !mine)
    return op.error(mine.error());
  PooledBuffer buffer(op.face().read_buffers);
  size = std::min(size, kReadSizeMax);
  const auto got =
      op.engine().read(id(ino), static_cast<std::uint64_t>(offset), buffer.bytes().first(size));
  if (!got) return op.error(got.error());
  op.bytes(buffer.bytes().data(), *got);
  if (op.face().atime && (fi->flags & O_NOATIME) == 0) op.engine().touch(id(ino));
}

void write_file(fuse_req_t req, fuse_ino_t ino, fuse_bufvec* in, off_t offset, fuse_file_info* fi) {
  Op op(req, OpKind::kWrite);
  // Splicing is off, so that libfuse hands over the one buffer that it read the
  // request into.
  if (in->count != 1 || (in->buf[0].flags & FUSE_BUF_IS_FD) != 0) return op.error(EIO);
  if (const Status mine = op.engine().check_change(id(ino), fi->fh); !mine)
    return op.error(mine.error());
  const Bytes bytes(static_cast<const std::byte*>(in->buf[0].mem) + in->off,
                    in->buf[0].size - in->off);
  WriteOptions options;
  options.handle = fi->fh;
  // On a lone node the kernel knows the end, and whether this write goes there (RWF_NOAPPEND).
  // Pages that it writes back for mmap have a place of their own, also on such a handle.
  options.append = op.face().clustered && (fi->flags & O_APPEND) != 0 && !fi->writepage;
  if (request_kills_privileges()) {
    if (const Status cleared = clear_privileges(op, id(ino)); !cleared)
      return op.error(cleared.error());
  }
  const Status written =
      op.engine().write(id(ino), static_cast<std::uint64_t>(offset), bytes, options);
  if (!written) return op.error(written.error());
  fuse_reply_write(req, bytes.size());
}

/// On a lone node a close has nothing to report that an fsync would not, and nobody else to show
/// the bytes to.
void flush_file(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Op op(req, OpKind::kFlush);
  if (!op.face().clustered) return op.unimplemented();
  const Status flushed = op.engine().flush(id(ino));
  // A process that closes any descriptor of a file loses all its locks on it.
  op.face().handle_locks.flushed(fi->fh, id(ino), fi->lock_owner);
  op.engine().drop_locks(id(ino), LockKind::kPosix, fi->lock_owner);
  const Status kept = op.engine().check_bytes(id(ino), fi->fh);  // said once, so it goes first
  op.done(kept ? flushed : kept);
}

void release_file(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Op op(req, OpKind::kRelease);
  if (op.face().clustered) {
    if (fi->flock_release) op.engine().drop_locks(id(ino), LockKind::kFlock, fi->fh);
    for (const std::uint64_t owner : op.face().handle_locks.released(fi->fh, id(ino)))
      op.engine().drop_locks(id(ino), LockKind::kPosix, owner);
    op.engine().close_handle(id(ino));
  }
  op.done({});
}

void sync_file(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info* fi) {
  Op op(req, OpKind::kFsync);
  const Status synced = op.engine().sync(id(ino));
  const Status kept = op.engine().check_bytes(id(ino), fi->fh);
  op.done(kept ? synced : kept);
}

}  // namespace

void add_data_ops(fuse_lowlevel_ops& ops) {
  ops.open = open_file;
  ops.create = create_file;
  ops.read = read_file;
  ops.write_buf = write_file;
  ops.flush = flush_file;
  ops.release = release_file;
  ops.fsync = sync_file;
}

}  // namespace kvsyncfs
