// Names: lookup, create, link, unlink, rename, list; the life and end of inodes.
#include <algorithm>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {
/// Above this, an orphan is freed in the background instead of by whoever releases it last.
constexpr std::uint64_t kReclaimInlineBytes = 64u << 20;
}  // namespace

Result<Entry> EngineImpl::lookup(InodeId parent, std::string_view name) {
  if (name.size() > kNameSizeMax) return Code::kNameTooLong;
  KVSYNCFS_TRY(may_answer());
  auto dentry = catalog_->lookup(parent, name);
  if (!dentry) {
    if (dentry.error().code != Code::kNotFound) return dentry.error();
    auto directory = catalog_->inode(parent);
    if (directory && !is_directory(*directory)) return Code::kNotDirectory;
    return Code::kNotFound;
  }
  KVSYNCFS_ASSIGN(Inode found, attributes(dentry->inode));
  return Entry{dentry->inode, std::move(found)};
}

Result<Entry> EngineImpl::create(InodeId parent, std::string_view name, const NewNode& node) {
  KVSYNCFS_TRY(admit_growth());
  if (node.target.size() > kSymlinkSizeMax) return Code::kNameTooLong;
  KVSYNCFS_ASSIGN(
      CommandResult result,
      commit_one(CreateCommand{parent, std::string(name), node.mode, node.umask, node.uid, node.gid,
                               node.device, node.target, clock_.now()}));
  return Entry{result.inode, std::move(result.attributes)};
}

Result<Entry> EngineImpl::link(InodeId inode, InodeId parent, std::string_view name) {
  KVSYNCFS_TRY(admit_growth());
  KVSYNCFS_TRY(commit_one(LinkCommand{inode, parent, std::string(name), clock_.now()}));
  KVSYNCFS_ASSIGN(Inode linked, attributes(inode));
  return Entry{inode, std::move(linked)};
}

Status EngineImpl::unlink_kind(InodeId parent, std::string_view name, bool directory) {
  KVSYNCFS_TRY(admit_change());
  KVSYNCFS_ASSIGN(CommandResult result,
                  commit_one(UnlinkCommand{parent, std::string(name), directory, clock_.now()}));
  if (result.orphaned) orphaned(result.inode);
  return {};
}

Status EngineImpl::unlink(InodeId parent, std::string_view name) {
  return unlink_kind(parent, name, false);
}
Status EngineImpl::remove_directory(InodeId parent, std::string_view name) {
  return unlink_kind(parent, name, true);
}

Status EngineImpl::rename(InodeId old_parent, std::string_view old_name, InodeId new_parent,
                          std::string_view new_name, RenameMode mode) {
  KVSYNCFS_TRY(admit_change());
  if (mode == RenameMode::kReplace)
    KVSYNCFS_TRY(commit_source_of_replace(old_parent, old_name, new_parent, new_name));
  KVSYNCFS_ASSIGN(CommandResult result,
                  commit_one(RenameCommand{old_parent, std::string(old_name), new_parent,
                                           std::string(new_name), mode, clock_.now()}));
  if (result.orphaned) orphaned(result.replaced);
  return {};
}

/// A safe replace is never an empty file after a crash (P3): the new bytes come before the rename
/// in the log, and a crash keeps a prefix of the log.
Status EngineImpl::commit_source_of_replace(InodeId old_parent, std::string_view old_name,
                                            InodeId new_parent, std::string_view new_name) {
  if (!catalog_->lookup(new_parent, new_name)) return {};
  auto source = catalog_->lookup(old_parent, old_name);
  if (!source) return {};
  LiveInodePtr live = live_.find(source->inode);
  return live ? commit_dirty(live) : Status{};
}

Result<std::vector<ListEntry>> EngineImpl::list(InodeId directory, std::uint64_t cookie,
                                                std::size_t count_max, bool with_attributes) {
  KVSYNCFS_TRY(may_answer());
  KVSYNCFS_ASSIGN(auto dentries, catalog_->list(directory, cookie, count_max));
  std::vector<ListEntry> entries;
  entries.reserve(dentries.size());
  for (Dentry& dentry : dentries) {
    ListEntry entry{std::move(dentry), {}};
    if (with_attributes) {
      auto found = attributes(entry.dentry.inode);
      if (found) {
        entry.attributes = std::move(*found);
      } else if (found.error().code == Code::kNotFound) {
        continue;  // removed since the listing was read
      } else {
        return found.error();
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::uint64_t EngineImpl::newest_cookie() const {
  return id_at({log_->last().value + 1}, 0) + kCookieMin - 1;
}

/// The last name went; the inode lives on while somebody retains it. In a cluster all nodes are
/// asked (engine_cluster.cc).
void EngineImpl::orphaned(InodeId inode) {
  if (cluster_) return;
  {
    std::lock_guard lock(orphans_mutex_);
    orphans_.insert(inode);
  }
  if (!live_.retained(inode)) release(inode, 0);
}

void EngineImpl::release(InodeId inode, std::uint64_t count) {
  if (count > 0 && !live_.release(inode, count)) return;
  if (cluster_) return cluster_->handles.left_kernel(inode);
  {
    std::lock_guard lock(orphans_mutex_);
    if (orphans_.erase(inode) == 0) return;
    auto attributes = catalog_->inode(inode);
    if (attributes && attributes->allocated_bytes > kReclaimInlineBytes) {
      reclaim_queue_.push_back(inode);
      wake();
      return;
    }
  }
  // An orphan that cannot be freed now (a failed log) is freed by the next mount.
  const Status freed = reclaim(inode);
  if (freed) return;
  if (freed.error().code == Code::kTimeout) return reclaim_later(inode);
  options_.warn("reclaim of an unlinked file: " + describe(freed.error()));
}

void EngineImpl::reclaim_later(InodeId inode) {
  std::lock_guard lock(orphans_mutex_);
  reclaim_queue_.push_back(inode);
}

Status EngineImpl::reclaim(std::span<const InodeId> inodes) {
  for (const InodeId inode : inodes) KVSYNCFS_TRY(drop_dirty_bytes(inode));
  std::vector<InodeId> left(inodes.begin(), inodes.end());
  while (!left.empty()) {
    Transaction transaction;
    for (const InodeId inode : left) transaction.commands.push_back(ReclaimCommand{inode});
    KVSYNCFS_ASSIGN(const auto results, commit(std::move(transaction)));
    std::vector<InodeId> more;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].status) {
        if (results[i].more) more.push_back(left[i]);
        continue;
      }
      // kBusy, kInvalid: in a cluster another node may be about it as well.
      const Code code = results[i].status.error().code;
      const bool others = cluster_ && (code == Code::kBusy || code == Code::kInvalid);
      if (code != Code::kNotFound && !others) return results[i].status.error();
    }
    left = std::move(more);
  }
  follow_reservations();
  for (const InodeId inode : inodes) live_.drop_if_idle(inode);
  return {};
}

/// Of an inode that is to be reclaimed.
Status EngineImpl::drop_dirty_bytes(InodeId inode) {
  const LiveInodePtr live = live_.find(inode);
  if (!live) return {};
  KVSYNCFS_ASSIGN(const auto no_flush, lock_flush(live));
  std::unique_lock lock(live->mutex);
  live->gone = true;
  live->dirty.clear();
  live->mtime.reset();
  settle(*live);
  return {};
}

}  // namespace kvsyncfs
