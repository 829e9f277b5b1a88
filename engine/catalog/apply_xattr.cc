// Extended attributes, and the ACLs among them.
#include "engine/catalog/apply.h"
#include "engine/catalog/posix_acl.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kSetGroupId = 02000, kPermissionBits = 0777;

/// As many attributes as are sure to stay below kXattrListSizeMax, however long their names.
constexpr std::uint32_t kXattrCountSurelyFine = kXattrListSizeMax / (kNameSizeMax + 1) - 1;

bool is_acl(std::string_view name) { return name == kAccessAclName || name == kDefaultAclName; }

constexpr std::string_view kUserSpace = "user.";

/// Errors: those of the name alone, kUnsupported (an ACL of a symbolic link), kNotPermitted.
Status check_xattr_of(const Inode& inode, std::string_view name) {
  KVSYNCFS_TRY(check_xattr_name(name));
  if (is_acl(name)) return is_symlink(inode) ? Status(Code::kUnsupported) : Status{};
  const bool wants_file =
      name.starts_with(kUserSpace) && !is_regular(inode) && !is_directory(inode);
  return wants_file ? Status(Code::kNotPermitted) : Status{};
}

/// Errors: kNoSpace.
Status check_list_size(const CommandRun& run, const StagedInode& staged, std::string_view name) {
  if (staged.inode.xattr_count < kXattrCountSurelyFine) return {};
  KVSYNCFS_ASSIGN(auto names, run.xattr_names(staged));
  std::size_t size = name.size() + 1;
  for (const std::string& n : names) size += n.size() + 1;
  return size > kXattrListSizeMax ? Status(Code::kNoSpace) : Status{};
}

/// Stores the ACL, or removes what is stored when there is none to store.
Status store_acl(CommandRun& run, StagedInode& staged, std::string_view name, const Acl& acl) {
  KVSYNCFS_ASSIGN(auto old, run.find_xattr(staged, name));
  if (!acl.empty()) {
    if (!old) KVSYNCFS_TRY(check_list_size(run, staged, name));
    run.put_xattr(staged, name, encode_acl(acl), !old);
  } else if (old) {
    run.delete_xattr(staged, name);
  }
  return {};
}

Status set_acl(CommandRun& run, StagedInode& staged, const SetXattrCommand& c) {
  KVSYNCFS_ASSIGN(Acl acl, parse_acl(c.value));
  if (c.name == kDefaultAclName) {
    if (!is_directory(staged.inode)) return acl.empty() ? Status{} : Status(Code::kAccess);
    return store_acl(run, staged, c.name, acl);
  }
  if (!acl.empty()) {
    if (!set_mode_from_acl(acl, staged.inode.mode)) acl.clear();
    if (c.clear_setgid) staged.inode.mode &= ~kSetGroupId;
  }
  return store_acl(run, staged, c.name, acl);
}

Status set_plain(CommandRun& run, StagedInode& staged, const SetXattrCommand& c) {
  KVSYNCFS_ASSIGN(auto old, run.find_xattr(staged, c.name));
  if (old && c.mode == XattrMode::kCreate) return Code::kExists;
  if (!old && c.mode == XattrMode::kReplace) return Code::kNoData;
  if (!old) KVSYNCFS_TRY(check_list_size(run, staged, c.name));
  run.put_xattr(staged, c.name, c.value, !old);
  return {};
}

}  // namespace

Status check_xattr_name(std::string_view name) {
  if (name.empty() || name.size() > kNameSizeMax || name.find('\0') != name.npos)
    return Code::kRange;
  if (is_acl(name)) return {};
  for (std::string_view space :
       {kUserSpace, std::string_view("trusted."), std::string_view("security.")})
    if (name.starts_with(space))
      return name.size() == space.size() ? Status(Code::kInvalid) : Status{};
  return Code::kUnsupported;
}

Status inherit_acl(CommandRun& run, const StagedInode& parent, StagedInode& child,
                   std::uint32_t umask) {
  if (is_symlink(child.inode)) return {};
  KVSYNCFS_ASSIGN(auto inherited, run.find_xattr(parent, kDefaultAclName));
  if (!inherited) {
    child.inode.mode &= ~(umask & kPermissionBits);
    return {};
  }
  auto parsed = parse_acl(*inherited);
  if (!parsed || parsed->empty())
    return Error{Code::kCorrupt, "catalog: a stored default ACL is damaged"};
  if (mask_acl_at_create(*parsed, child.inode.mode))
    run.put_xattr(child, kAccessAclName, encode_acl(*parsed), true);
  if (is_directory(child.inode)) run.put_xattr(child, kDefaultAclName, *inherited, true);
  return {};
}

Status update_acl_after_chmod(CommandRun& run, StagedInode& staged) {
  KVSYNCFS_ASSIGN(auto stored, run.find_xattr(staged, kAccessAclName));
  if (!stored) return {};
  auto acl = parse_acl(*stored);
  if (!acl) return Error{Code::kCorrupt, "catalog: a stored access ACL is damaged"};
  change_acl_mode(*acl, staged.inode.mode);
  run.put_xattr(staged, kAccessAclName, encode_acl(*acl), false);
  return {};
}

Status run_command(CommandRun& run, const SetXattrCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * staged, run.load(c.inode));
  KVSYNCFS_TRY(check_xattr_of(staged->inode, c.name));
  if (c.value.size() > kXattrValueSizeMax) return Code::kTooBig;
  KVSYNCFS_TRY(is_acl(c.name) ? set_acl(run, *staged, c) : set_plain(run, *staged, c));
  CommandRun::touch(*staged, c.time);
  run.result.inode = c.inode;
  return {};
}

Status run_command(CommandRun& run, const RemoveXattrCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * staged, run.load(c.inode));
  KVSYNCFS_TRY(check_xattr_of(staged->inode, c.name));
  KVSYNCFS_ASSIGN(auto old, run.find_xattr(*staged, c.name));
  run.result.inode = c.inode;
  // Linux takes the removal of an ACL that is not there for done.
  if (!old) return is_acl(c.name) ? Status{} : Status(Code::kNoData);
  run.delete_xattr(*staged, c.name);
  CommandRun::touch(*staged, c.time);
  return {};
}

}  // namespace kvsyncfs
