// getattr, setattr.
#include <sys/stat.h>

#include <ctime>

#include "fs/ops/op.h"
#include "fs/request_flags.h"

namespace kvsyncfs {

namespace {

Timestamp from_timespec(const timespec& t) {
  return {t.tv_sec, static_cast<std::uint32_t>(t.tv_nsec)};
}

Timestamp wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return from_timespec(now);
}

/// The kernel names a handle where a read of it wants to know whether its pages are still right;
/// fstat(2) does not.
void get_attributes(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Op op(req, OpKind::kGetattr);
  const double keep_seconds = op.face().keep_seconds(id(ino));
  op.attributes(
      id(ino),
      fi != nullptr ? op.engine().attributes_of_open(id(ino)) : op.engine().attributes(id(ino)),
      keep_seconds);
}

/// Set-group-ID goes also where the group may not execute, unless the caller is a member or root.
bool kills_setgid(Op& op, InodeId inode) {
  if (op.context().uid == 0) return false;
  const auto current = op.engine().attributes(inode);
  return current && (current->mode & S_ISGID) != 0 && !is_in_group(op, current->gid);
}

void set_attributes(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set,
                    fuse_file_info* fi) {
  Op op(req, OpKind::kSetattr);
  if (const Status mine = op.engine().check_change(id(ino), fi != nullptr ? fi->fh : 0); !mine)
    return op.error(mine.error());
  AttributeChange change;
  const auto asked = [to_set](int bit) { return (to_set & bit) != 0; };
  if (asked(FUSE_SET_ATTR_MODE)) change.mode = attr->st_mode;
  if (asked(FUSE_SET_ATTR_UID)) change.uid = attr->st_uid;
  if (asked(FUSE_SET_ATTR_GID)) change.gid = attr->st_gid;
  if (asked(FUSE_SET_ATTR_SIZE)) change.size = static_cast<std::uint64_t>(attr->st_size);
  if (asked(FUSE_SET_ATTR_ATIME)) change.atime = from_timespec(attr->st_atim);
  if (asked(FUSE_SET_ATTR_MTIME)) change.mtime = from_timespec(attr->st_mtim);
  const Timestamp now = wall_clock();  // one for both
  if (asked(FUSE_SET_ATTR_ATIME_NOW)) change.atime = now;
  if (asked(FUSE_SET_ATTR_MTIME_NOW)) change.mtime = now;
  // chown(2) clears the bits for everybody, truncate(2) for who may not keep
  // them, which the kernel says; an explicit mode is the caller's word.
  const bool owner = change.uid || change.gid;
  if (!change.mode) change.kill_privileges = owner || request_kills_privileges();
  if (change.kill_privileges) change.kill_setgid = kills_setgid(op, id(ino));
  op.attributes(id(ino), op.engine().set_attributes(id(ino), change), op.face().cache_seconds());
}

}  // namespace

void add_attr_ops(fuse_lowlevel_ops& ops) {
  ops.getattr = get_attributes;
  ops.setattr = set_attributes;
}

}  // namespace kvsyncfs
