// lookup, forget: how the kernel comes to know an inode and lets it go. Every
// entry reply counts one reference in the engine; forget gives them back.
#include <algorithm>

#include "fs/ops/op.h"

namespace kvsyncfs {

fuse_entry_param to_entry(const Face& face, InodeId inode, const Inode& attributes) {
  fuse_entry_param e{};
  e.ino = inode.value;
  e.generation = 1;  // inode numbers never repeat
  e.attr = to_stat(inode, attributes);
  e.attr_timeout = e.entry_timeout = face.cache_seconds();
  return e;
}

void Op::entry(const Result<Entry>& result) {
  if (!result) return error(result.error());
  const fuse_entry_param e = to_entry(face_, result->inode, result->attributes);
  engine().retain(result->inode);
  // The request may have been interrupted: then the kernel never saw the entry
  // and will not forget it.
  if (fuse_reply_entry(req_, &e) != 0) engine().release(result->inode);
}

/// The system call that looks a name up wants the attributes as well, so the kernel keeps them as
/// long as that takes. It may not know the inode yet: it is retained before the attributes are
/// read, and the time is short, since an inode that the kernel forgets and learns anew at that
/// moment could take the older of two answers.
void Op::looked_up(const Result<Entry>& found) {
  constexpr double kOneCallSeconds = 0.001;
  if (!found || !face_.clustered) return entry(found);
  engine().retain(found->inode);
  const double keep_seconds = std::min(face_.keep_seconds(found->inode), kOneCallSeconds);
  const auto attributes = engine().attributes(found->inode);
  if (attributes) {
    fuse_entry_param e = to_entry(face_, found->inode, *attributes);
    e.attr_timeout = keep_seconds;
    if (fuse_reply_entry(req_, &e) == 0) return;
  } else {
    error(attributes.error());
  }
  engine().release(found->inode);
}

namespace {

Result<Entry> find(Engine& engine, InodeId parent, std::string_view name) {
  if (name != "." && name != "..") return engine.lookup(parent, name);
  KVSYNCFS_ASSIGN(Inode here, engine.attributes(parent));  // for NFS export
  // The kernel asks for what it does not know any more, so nobody here has a nameless one open.
  if (here.link_count == 0) return Error(Code::kStale, "the file was removed");
  if (name == ".") return Entry{parent, std::move(here)};
  const InodeId up = here.parent.value == 0 ? kRootInode : here.parent;
  KVSYNCFS_ASSIGN(Inode above, engine.attributes(up));
  return Entry{up, std::move(above)};
}

void lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Op op(req, OpKind::kLookup);
  const auto found = find(op.engine(), id(parent), name);
  const bool keeps_names = op.face().cache_seconds() > 0;
  if (!found && found.error().code == Code::kNotFound && keeps_names) {
    fuse_entry_param none{};  // ino 0: the kernel remembers that there is
                              // nothing, until it makes the name
    none.entry_timeout = op.face().cache_seconds();
    fuse_reply_entry(req, &none);
    return;
  }
  op.looked_up(found);
}

void forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t count) {
  Op op(req, OpKind::kForget);
  op.engine().release(id(ino), count);
  fuse_reply_none(req);
}

void forget_multi(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) {
  Op op(req, OpKind::kForget);
  for (std::size_t i = 0; i < count; ++i)
    op.engine().release(id(forgets[i].ino), forgets[i].nlookup);
  fuse_reply_none(req);  // frees `forgets`
}

}  // namespace

void add_lookup_ops(fuse_lowlevel_ops& ops) {
  ops.lookup = lookup;
  ops.forget = forget;
  ops.forget_multi = forget_multi;
}

}  // namespace kvsyncfs
