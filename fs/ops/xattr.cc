// Extended attributes, POSIX ACLs among them (the kernel enforces them, the
// catalog keeps them in step with the mode).
#include <sys/xattr.h>

#include "fs/ops/op.h"

namespace kvsyncfs {

namespace {

/// The protocol of getxattr(2): size 0 asks how much, too little is ERANGE.
void reply_value(Op& op, std::string_view value, std::size_t size) {
  if (size == 0)
    fuse_reply_xattr(op.request(), value.size());
  else if (value.size() > size)
    op.error(ERANGE);
  else
    op.bytes(value.data(), value.size());
}

void get_xattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  Op op(req, OpKind::kGetxattr);
  const auto value = op.engine().xattr(id(ino), name);
  if (!value) return op.error(value.error());
  reply_value(op, *value, size);
}

void list_xattrs(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  Op op(req, OpKind::kListxattr);
  const auto names = op.engine().xattr_names(id(ino));
  if (!names) return op.error(names.error());
  // The kernel lets only root read these, but lists what it is given.
  const bool is_root = op.context().uid == 0;
  std::string list;
  for (const std::string& name : *names)
    if (is_root || !name.starts_with("trusted.")) list.append(name).push_back('\0');
  reply_value(op, list, size);
}

/// chmod(2)'s rule for the mode that an ACL brings: only members of the file's
/// group and root keep the set-group-ID bit. The kernel leaves it to the
/// daemon, whose libfuse does not pass its word on.
bool clears_setgid(Op& op, InodeId inode, std::string_view name) {
  if (name != "system.posix_acl_access" || op.context().uid == 0) return false;
  const auto attributes = op.engine().attributes(inode);
  return attributes && !is_in_group(op, attributes->gid);
}

void set_xattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
               std::size_t size, int flags) {
  Op op(req, OpKind::kSetxattr);
  XattrMode mode = XattrMode::kSet;
  if (flags == (XATTR_CREATE | XATTR_REPLACE)) {  // there and not there
    const auto value_there = op.engine().xattr(id(ino), name);
    return value_there ? op.error(EEXIST) : op.error(value_there.error());
  }
  if (flags == XATTR_CREATE)
    mode = XattrMode::kCreate;
  else if (flags == XATTR_REPLACE)
    mode = XattrMode::kReplace;
  else if (flags != 0)
    return op.error(EINVAL);
  const bool clear_setgid = clears_setgid(op, id(ino), name);
  op.done(op.engine().set_xattr(id(ino), name, {value, size}, mode, clear_setgid));
}

void remove_xattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  Op op(req, OpKind::kRemovexattr);
  op.done(op.engine().remove_xattr(id(ino), name));
}

}  // namespace

void add_xattr_ops(fuse_lowlevel_ops& ops) {
  ops.getxattr = get_xattr;
  ops.listxattr = list_xattrs;
  ops.setxattr = set_xattr;
  ops.removexattr = remove_xattr;
}

}  // namespace kvsyncfs
