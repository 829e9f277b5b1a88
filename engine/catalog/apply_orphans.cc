// Inodes without a name: who holds them, and their end.
#include <algorithm>
#include <map>

#include "engine/catalog/apply.h"

namespace kvsyncfs {

Status run_command(CommandRun& run, const ReclaimCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * inode, run.load(c.inode));
  KVSYNCFS_ASSIGN(const auto orphan, run.find_orphan(c.inode));
  if (!orphan) return Code::kInvalid;
  if (run.is_held(*orphan)) return Code::kBusy;
  KVSYNCFS_ASSIGN(const bool locked, is_locked(run, c.inode));
  if (locked) return Code::kBusy;
  run.result.inode = c.inode;
  if (inode->inode.allocated_bytes != 0) {
    KVSYNCFS_ASSIGN(auto first, run.extents(c.inode, 0, kFileSizeMax + 1, kReclaimExtentsMax));
    if (!first.empty()) KVSYNCFS_TRY(run.replace(*inode, 0, first.back().file_end(), {}));
    run.result.more = first.size() == kReclaimExtentsMax;
    if (run.result.more) return {};
  }
  KVSYNCFS_ASSIGN(auto names, run.xattr_names(*inode));
  for (const std::string& name : names) run.delete_xattr(*inode, name);
  run.remove_orphan(c.inode);
  run.remove(*inode);
  return {};
}

namespace {

/// The orphans that one command changes, each read once.
using Orphans = std::map<InodeId, std::optional<OrphanRecord>>;

Result<OrphanRecord*> find(CommandRun& run, Orphans& orphans, InodeId id) {
  auto [it, is_new] = orphans.try_emplace(id);
  if (is_new) {
    KVSYNCFS_ASSIGN(it->second, run.find_orphan(id));
  }
  return it->second ? &*it->second : nullptr;
}

}  // namespace

Status run_command(CommandRun& run, const HoldOrphansCommand& c) {
  if (!run.session()) return Code::kInvalid;
  const SessionId session = *run.session();
  const auto is_own = [&](const OrphanRecord::Holder& h) { return h.session == session; };
  Orphans orphans;
  for (const InodeId id : c.held) {
    KVSYNCFS_ASSIGN(OrphanRecord * orphan, find(run, orphans, id));
    if (orphan == nullptr) continue;
    const auto own = std::find_if(orphan->holders.begin(), orphan->holders.end(), is_own);
    if (own != orphan->holders.end()) own->has_said = true;
  }
  for (const InodeId id : c.released) {
    KVSYNCFS_ASSIGN(OrphanRecord * orphan, find(run, orphans, id));
    if (orphan == nullptr || std::erase_if(orphan->holders, is_own) == 0) continue;
    if (!run.is_held(*orphan)) run.result.reclaimable.push_back(id);
  }
  for (const auto& [id, orphan] : orphans)
    if (orphan) run.put_orphan(id, *orphan);
  return {};
}

}  // namespace kvsyncfs
