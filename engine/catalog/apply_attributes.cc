// setattr: mode, owner, size and times.
#include "engine/catalog/apply.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kSetUserId = 04000, kSetGroupId = 02000, kGroupExecute = 00010,
                        kModeBits = 07777;
constexpr std::string_view kCapability = "security.capability";

/// Errors: kIsDirectory, kInvalid, kFileTooBig.
Status set_size(CommandRun& run, StagedInode& file, std::uint64_t size) {
  if (is_directory(file.inode)) return Code::kIsDirectory;
  if (!is_regular(file.inode)) return Code::kInvalid;
  if (size > kFileSizeMax) return Code::kFileTooBig;
  // Also what fallocate reserved past the end goes, as on other file systems; an extension keeps
  // it.
  if (size <= file.inode.size) KVSYNCFS_TRY(run.replace(file, size, kFileSizeMax - size + 1, {}));
  file.inode.size = size;
  return {};
}

}  // namespace

Status kill_privileges(CommandRun& run, StagedInode& staged, bool kill_setgid) {
  if (is_directory(staged.inode)) return {};
  std::uint32_t& mode = staged.inode.mode;
  mode &= ~kSetUserId;
  if (kill_setgid || (mode & kGroupExecute) != 0) mode &= ~kSetGroupId;
  KVSYNCFS_ASSIGN(auto capability, run.find_xattr(staged, kCapability));
  if (capability) run.delete_xattr(staged, kCapability);
  return {};
}

Status run_command(CommandRun& run, const SetAttrCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * staged, run.load(c.inode));
  Inode& inode = staged->inode;
  if (c.size) KVSYNCFS_TRY(set_size(run, *staged, *c.size));
  if (c.uid) inode.uid = *c.uid;
  if (c.gid) inode.gid = *c.gid;
  if (c.mode) {
    inode.mode = (inode.mode & kTypeMask) | (*c.mode & kModeBits);
    KVSYNCFS_TRY(update_acl_after_chmod(run, *staged));
  }
  if (c.kill_privileges) KVSYNCFS_TRY(kill_privileges(run, *staged, c.kill_setgid));
  if (c.atime) inode.atime = *c.atime;
  if (c.mtime) inode.mtime = *c.mtime;
  if (c.keep_ctime) {
    staged->state = StagedInode::State::kChanged;
  } else {
    CommandRun::touch(*staged, c.time);
  }
  run.result.inode = c.inode;
  return {};
}

}  // namespace kvsyncfs
