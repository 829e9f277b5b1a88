// rename: replace, no-replace and exchange.
#include "engine/catalog/apply.h"

namespace kvsyncfs {

namespace {

/// One rename while it is worked out: two directories, the inode that moves, and what has the new
/// name.
struct Rename {
  const RenameCommand& command;
  StagedInode& old_parent;
  StagedInode& new_parent;
  Dentry old_dentry;
  std::optional<Dentry> new_dentry;
  StagedInode& source;
  StagedInode* target;  ///< null where the new name is free

  bool moves() const { return &old_parent != &new_parent; }
  bool exchanges() const { return command.mode == RenameMode::kExchange; }
};

Result<Rename> load_rename(CommandRun& run, const RenameCommand& c) {
  KVSYNCFS_TRY(check_name(c.old_name));
  KVSYNCFS_TRY(check_name(c.new_name));
  KVSYNCFS_ASSIGN(StagedInode * old_parent, load_directory(run, c.old_parent));
  KVSYNCFS_ASSIGN(StagedInode * new_parent, load_directory(run, c.new_parent));
  KVSYNCFS_ASSIGN(auto old_dentry, run.find(c.old_parent, c.old_name));
  if (!old_dentry) return Code::kNotFound;
  KVSYNCFS_ASSIGN(auto new_dentry, run.find(c.new_parent, c.new_name));
  if (new_dentry && c.mode == RenameMode::kNoReplace) return Code::kExists;
  if (!new_dentry && c.mode == RenameMode::kExchange) return Code::kNotFound;
  KVSYNCFS_ASSIGN(StagedInode * source, run.load(old_dentry->inode));
  StagedInode* target = nullptr;
  if (new_dentry) {
    KVSYNCFS_ASSIGN(target, run.load(new_dentry->inode));
  }
  return Rename{c,       *old_parent, *new_parent, std::move(*old_dentry), std::move(new_dentry),
                *source, target};
}

/// A directory may not move into what lies below it. Errors: kInvalid, kCorrupt.
Status check_no_cycle(CommandRun& run, const StagedInode& moving, const StagedInode& into) {
  if (!is_directory(moving.inode)) return {};
  KVSYNCFS_ASSIGN(bool inside, run.is_inside(into.id, moving.id));
  return inside ? Status(Code::kInvalid) : Status{};
}

/// Errors: kNotDirectory, kIsDirectory, kNotEmpty.
Status check_replaceable(CommandRun& run, const Rename& r) {
  const bool source_is_directory = is_directory(r.source.inode);
  const bool target_is_directory = is_directory(r.target->inode);
  if (source_is_directory && !target_is_directory) return Code::kNotDirectory;
  if (!source_is_directory && target_is_directory) return Code::kIsDirectory;
  if (!target_is_directory) return {};
  KVSYNCFS_ASSIGN(bool empty, run.is_empty_directory(r.target->id));
  return empty ? Status{} : Status(Code::kNotEmpty);
}

Status check_rename(CommandRun& run, const Rename& r) {
  if (r.moves()) {
    KVSYNCFS_TRY(check_no_cycle(run, r.source, r.new_parent));
    if (r.exchanges()) KVSYNCFS_TRY(check_no_cycle(run, *r.target, r.old_parent));
  }
  if (r.target != nullptr && !r.exchanges()) return check_replaceable(run, r);
  return {};
}

/// `directory` hangs below `to` now: its parent, and the links that its ".." is. Errors:
/// kTooManyLinks.
Status reparent(StagedInode& inode, StagedInode& from, StagedInode& to) {
  if (!is_directory(inode.inode) || &from == &to) return {};
  if (to.inode.link_count >= kLinkCountMax) return Code::kTooManyLinks;
  --from.inode.link_count;
  ++to.inode.link_count;
  inode.inode.parent = to.id;
  return {};
}

/// Both names stay where they are in their listings; only what they name changes.
Status exchange(CommandRun& run, Rename& r) {
  // The one that leaves first makes room for the other, so a full directory can still exchange.
  if (r.moves() && is_directory(r.source.inode) && is_directory(r.target->inode)) {
    r.source.inode.parent = r.new_parent.id;
    r.target->inode.parent = r.old_parent.id;
  } else {
    KVSYNCFS_TRY(reparent(r.source, r.old_parent, r.new_parent));
    KVSYNCFS_TRY(reparent(*r.target, r.new_parent, r.old_parent));
  }
  std::swap(r.old_dentry.inode, r.new_dentry->inode);
  std::swap(r.old_dentry.type, r.new_dentry->type);
  run.put_dentry(r.old_parent.id, r.old_dentry);
  run.put_dentry(r.new_parent.id, *r.new_dentry);
  CommandRun::touch(*r.target, r.command.time);
  return {};
}

Status replace(CommandRun& run, Rename& r) {
  run.delete_dentry(r.old_parent.id, r.old_dentry);
  Dentry entry = r.old_dentry;
  entry.name = r.command.new_name;
  // In its directory an entry keeps its place: who renames what a listing shows meets no end
  // otherwise.
  if (r.moves()) entry.cookie = run.new_cookie();
  if (r.target != nullptr) {
    // The new name was there and stays there: a listing under way shows it once.
    entry.cookie = r.new_dentry->cookie;
    if (is_directory(r.target->inode)) --r.new_parent.inode.link_count;
    run.result.orphaned = drop_link(run, *r.target, r.command.time);
  }
  KVSYNCFS_TRY(reparent(r.source, r.old_parent, r.new_parent));
  run.put_dentry(r.new_parent.id, entry);
  return {};
}

}  // namespace

Status run_command(CommandRun& run, const RenameCommand& c) {
  KVSYNCFS_ASSIGN(Rename r, load_rename(run, c));
  run.result.inode = r.source.id;
  if (r.target == &r.source) return {};  // two names of one inode: POSIX wants nothing done
  KVSYNCFS_TRY(check_rename(run, r));
  KVSYNCFS_TRY(r.exchanges() ? exchange(run, r) : replace(run, r));
  if (r.target != nullptr) run.result.replaced = r.target->id;
  CommandRun::touch(r.source, c.time);
  touch_directory(r.old_parent, c.time);
  if (r.moves()) touch_directory(r.new_parent, c.time);
  return {};
}

}  // namespace kvsyncfs
