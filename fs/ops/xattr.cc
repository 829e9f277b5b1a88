// Extended attributes, POSIX ACLs among them (the kernel enforces them, the catalog keeps them in
// step with the mode).
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
  std::string list;
  for (const std::string& name : *names) list.append(name).push_back('\0');
  reply_value(op, list, size);
}

void set_xattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
               std::size_t size, int flags) {
  Op op(req, OpKind::kSetxattr);
  XattrMode mode = XattrMode::kSet;
  if (flags == XATTR_CREATE)
    mode = XattrMode::kCreate;
  else if (flags == XATTR_REPLACE)
    mode = XattrMode::kReplace;
  else if (flags != 0)
    return op.error(EINVAL);
  op.done(op.engine().set_xattr(id(ino), name, {value, size}, mode));
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
