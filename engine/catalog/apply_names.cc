// create, link and unlink.
#include "engine/catalog/apply.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kRegularType = 0100000, kDirectoryType = 0040000, kSymlinkType = 0120000,
                        kCharacterType = 0020000, kBlockType = 0060000, kFifoType = 0010000,
                        kSocketType = 0140000;
constexpr std::uint32_t kSetGroupId = 02000, kModeBits = 07777;

bool is_known_type(std::uint32_t type) {
  return type == kRegularType || type == kDirectoryType || type == kSymlinkType ||
         type == kCharacterType || type == kBlockType || type == kFifoType || type == kSocketType;
}

/// What a create asks for, before the parent has its say. Errors: kInvalid, kNameTooLong.
Result<Inode> new_inode(const CreateCommand& c) {
  const std::uint32_t type = c.mode & kTypeMask;
  if (!is_known_type(type)) return Code::kInvalid;
  if (c.target.size() > kSymlinkSizeMax) return Code::kNameTooLong;
  if ((type == kSymlinkType) == c.target.empty()) return Code::kInvalid;
  Inode inode;
  inode.mode = type | (c.mode & kModeBits);
  inode.uid = c.uid;
  inode.gid = c.gid;
  inode.link_count = type == kDirectoryType ? 2 : 1;
  inode.size = c.target.size();
  inode.device = type == kCharacterType || type == kBlockType ? c.device : 0;
  inode.change = 1;
  inode.atime = inode.mtime = inode.ctime = inode.birth = c.time;
  if (type == kDirectoryType) inode.parent = c.parent;
  inode.target = c.target;
  return inode;
}

/// Errors: kExists.
Status check_free(CommandRun& run, InodeId parent, std::string_view name) {
  KVSYNCFS_ASSIGN(auto there, run.find(parent, name));
  return there ? Status(Code::kExists) : Status{};
}

}  // namespace

Status check_name(std::string_view name) {
  if (name.size() > kNameSizeMax) return Code::kNameTooLong;
  if (name.empty() || name == "." || name == "..") return Code::kInvalid;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return Code::kInvalid;
  return {};
}

Result<StagedInode*> load_directory(CommandRun& run, InodeId id) {
  KVSYNCFS_ASSIGN(StagedInode * directory, run.load(id));
  if (!is_directory(directory->inode)) return Code::kNotDirectory;
  if (directory->inode.link_count == 0) return Code::kNotFound;
  return directory;
}

void touch_directory(StagedInode& directory, const Timestamp& time) {
  directory.inode.mtime = time;
  CommandRun::touch(directory, time);
}

bool drop_link(CommandRun& run, StagedInode& staged, const Timestamp& time) {
  // A directory has one name, and its own "." goes with it.
  staged.inode.link_count = is_directory(staged.inode) ? 0 : staged.inode.link_count - 1;
  CommandRun::touch(staged, time);
  if (staged.inode.link_count != 0) return false;
  run.add_orphan(staged.id);
  return true;
}

Status run_command(CommandRun& run, const CreateCommand& c) {
  KVSYNCFS_TRY(check_name(c.name));
  KVSYNCFS_ASSIGN(StagedInode * parent, load_directory(run, c.parent));
  KVSYNCFS_TRY(check_free(run, c.parent, c.name));
  KVSYNCFS_ASSIGN(Inode inode, new_inode(c));
  const bool directory = is_directory(inode);
  if (directory && parent->inode.link_count >= kLinkCountMax) return Code::kTooManyLinks;
  if ((parent->inode.mode & kSetGroupId) != 0) {
    inode.gid = parent->inode.gid;
    if (directory) inode.mode |= kSetGroupId;
  }
  StagedInode& child = run.add({run.new_id()}, std::move(inode));
  KVSYNCFS_TRY(inherit_acl(run, *parent, child, c.umask));
  run.put_dentry(c.parent, {child.id, c.mode & kTypeMask, run.new_cookie(), c.name});
  if (directory) ++parent->inode.link_count;
  touch_directory(*parent, c.time);
  run.result.inode = child.id;
  return {};
}

Status run_command(CommandRun& run, const LinkCommand& c) {
  KVSYNCFS_TRY(check_name(c.name));
  KVSYNCFS_ASSIGN(StagedInode * parent, load_directory(run, c.parent));
  KVSYNCFS_ASSIGN(StagedInode * inode, run.load(c.inode));
  if (is_directory(inode->inode)) return Code::kNotPermitted;
  if (inode->inode.link_count == 0) return Code::kNotFound;
  KVSYNCFS_TRY(check_free(run, c.parent, c.name));
  if (inode->inode.link_count >= kLinkCountMax) return Code::kTooManyLinks;
  run.put_dentry(c.parent, {c.inode, inode->inode.mode & kTypeMask, run.new_cookie(), c.name});
  ++inode->inode.link_count;
  CommandRun::touch(*inode, c.time);
  touch_directory(*parent, c.time);
  run.result.inode = c.inode;
  return {};
}

Status run_command(CommandRun& run, const UnlinkCommand& c) {
  KVSYNCFS_TRY(check_name(c.name));
  KVSYNCFS_ASSIGN(StagedInode * parent, load_directory(run, c.parent));
  KVSYNCFS_ASSIGN(auto dentry, run.find(c.parent, c.name));
  if (!dentry) return Code::kNotFound;
  KVSYNCFS_ASSIGN(StagedInode * inode, run.load(dentry->inode));
  const bool directory = is_directory(inode->inode);
  if (directory && !c.directory) return Code::kIsDirectory;
  if (!directory && c.directory) return Code::kNotDirectory;
  if (directory) {
    KVSYNCFS_ASSIGN(bool empty, run.is_empty_directory(inode->id));
    if (!empty) return Code::kNotEmpty;
    --parent->inode.link_count;
  }
  run.delete_dentry(c.parent, *dentry);
  run.result.orphaned = drop_link(run, *inode, c.time);
  touch_directory(*parent, c.time);
  run.result.inode = inode->id;
  return {};
}

}  // namespace kvsyncfs
