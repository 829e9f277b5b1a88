// Names: mknod, mkdir, symlink, link, unlink, rmdir, rename, readlink.
#include <linux/fs.h>
#include <sys/stat.h>

#include "fs/ops/op.h"
#include "fs/session.h"

namespace kvsyncfs {

NewNode new_node(const fuse_ctx& caller, mode_t mode) {
  NewNode node;
  node.mode = mode;
  node.umask = caller.umask;
  node.uid = caller.uid;
  node.gid = caller.gid;
  return node;
}

namespace {

void make_node(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  Op op(req, OpKind::kMknod);
  NewNode node = new_node(op.context(), mode);
  if (S_ISCHR(mode) || S_ISBLK(mode)) node.device = device;
  op.entry(op.engine().create(id(parent), name, node));
}

void make_directory(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  Op op(req, OpKind::kMkdir);
  op.entry(op.engine().create(id(parent), name, new_node(op.context(), (mode & 07777) | S_IFDIR)));
}

void make_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  Op op(req, OpKind::kSymlink);
  NewNode node = new_node(op.context(), S_IFLNK | 0777);
  node.umask = 0;
  node.target = target;
  op.entry(op.engine().create(id(parent), name, node));
}

void make_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  Op op(req, OpKind::kLink);
  op.entry(op.engine().link(id(ino), id(parent), name));
}

void remove_file(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Op op(req, OpKind::kUnlink);
  op.done(op.engine().unlink(id(parent), name));
}

void remove_dir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Op op(req, OpKind::kRmdir);
  op.done(op.engine().remove_directory(id(parent), name));
}

/// A directory that came to another parent has another "..", and the kernel keeps its listing: it
/// forgets one only when the directory itself changes.
void forget_dotdot(Op& op, InodeId parent, const char* name) {
  const auto moved = op.engine().lookup(parent, name);
  if (moved && is_directory(moved->attributes)) op.face().session->forget_listing(moved->inode);
}

void rename_entry(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                  const char* new_name, unsigned flags) {
  Op op(req, OpKind::kRename);
  RenameMode mode;
  switch (flags) {
    case 0:
      mode = RenameMode::kReplace;
      break;
    case RENAME_NOREPLACE:
      mode = RenameMode::kNoReplace;
      break;
    case RENAME_EXCHANGE:
      mode = RenameMode::kExchange;
      break;
    default:
      return op.error(EINVAL);
  }
  const Status renamed = op.engine().rename(id(parent), name, id(new_parent), new_name, mode);
  if (renamed && parent != new_parent) {
    forget_dotdot(op, id(new_parent), new_name);
    if (mode == RenameMode::kExchange) forget_dotdot(op, id(parent), name);
  }
  op.done(renamed);
}

void read_link(fuse_req_t req, fuse_ino_t ino) {
  Op op(req, OpKind::kReadlink);
  const auto inode = op.engine().attributes(id(ino));
  if (!inode) return op.error(inode.error());
  if (!is_symlink(*inode)) return op.error(EINVAL);
  fuse_reply_readlink(req, inode->target.c_str());
}

}  // namespace

void add_name_ops(fuse_lowlevel_ops& ops) {
  ops.mknod = make_node;
  ops.mkdir = make_directory;
  ops.symlink = make_symlink;
  ops.link = make_link;
  ops.unlink = remove_file;
  ops.rmdir = remove_dir;
  ops.rename = rename_entry;
  ops.readlink = read_link;
}

}  // namespace kvsyncfs
