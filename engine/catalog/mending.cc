#include "engine/catalog/mending.h"

#include <vector>

namespace kvsyncfs {

Result<Inode*> Mending::edit(InodeId id) {
  auto found = inodes_.find(id);
  if (found == inodes_.end()) {
    KVSYNCFS_ASSIGN(Inode inode, tables_.inode(id));
    found =
        inodes_.emplace(id, StagedInode{id, std::move(inode), StagedInode::State::kChanged}).first;
  }
  return &found->second.inode;
}

Inode& Mending::make(InodeId id) {
  StagedInode& staged = inodes_[id];
  staged = {id, {}, StagedInode::State::kChanged};
  return staged.inode;
}

void Mending::put_entry(InodeId parent, const Dentry& dentry) {
  put(dentry_key(parent, dentry.name).view(), encode_dentry(dentry));
  put(cookie_key(parent, dentry.cookie).view(), encode_listing(dentry));
}

void Mending::erase_entry(InodeId parent, const Dentry& dentry) {
  erase(dentry_key(parent, dentry.name).view());
  erase(cookie_key(parent, dentry.cookie).view());
}

Result<std::uint64_t> Mending::free_cookie(InodeId parent, std::uint64_t highest) {
  for (std::uint64_t cookie = highest; cookie >= kCookieMin; --cookie) {
    if (cookies_.contains({parent, cookie})) continue;
    KVSYNCFS_ASSIGN(const auto taken, tables_.get(cookie_key(parent, cookie).view()));
    if (taken) continue;
    cookies_.insert({parent, cookie});
    return cookie;
  }
  return Error(Code::kCorrupt, "a directory has no cookie left");
}

void Mending::put_extent(InodeId id, const Extent& extent) {
  put(extent_key(id, extent.file_offset).view(), encode_extent(extent));
  if (extent.segment != kNoSegment)
    put(reverse_key(id, extent).view(), encode_length(extent.length));
}

void Mending::erase_extent(InodeId id, const Extent& extent) {
  erase(extent_key(id, extent.file_offset).view());
  if (extent.segment != kNoSegment) erase(reverse_key(id, extent).view());
}

Status Mending::commit(Tables& tables, const Cursor& cursor) {
  std::vector<StagedInode> inodes;
  inodes.reserve(inodes_.size());
  for (auto& [id, staged] : inodes_) inodes.push_back(std::move(staged));
  inodes_.clear();
  return tables.commit(batch_, inodes, segments_, cursor);
}

}  // namespace kvsyncfs
