#include "engine/catalog/command_run.h"

#include <algorithm>

namespace kvsyncfs {

Result<StagedInode*> CommandRun::load(InodeId id) {
  for (StagedInode& s : inodes_)
    if (s.id == id) return &s;
  KVSYNCFS_ASSIGN(Inode inode, tables_.inode(id));
  return &inodes_.emplace_back(StagedInode{id, std::move(inode), StagedInode::State::kRead});
}

StagedInode& CommandRun::add(InodeId id, Inode inode) {
  ++inodes_added_;
  return inodes_.emplace_back(StagedInode{id, std::move(inode), StagedInode::State::kChanged});
}

void CommandRun::remove(StagedInode& staged) {
  ++inodes_removed_;
  staged.state = StagedInode::State::kRemoved;
}

void CommandRun::touch(StagedInode& staged, const Timestamp& time) {
  staged.inode.ctime = std::max(staged.inode.ctime, time);
  ++staged.inode.change;
  staged.state = StagedInode::State::kChanged;
}

void CommandRun::add_orphan(InodeId id) {
  OrphanRecord orphan;
  for (const auto& [node, session] : tables_.sessions())
    if (session.lives()) orphan.holders.push_back({session.session, false});
  std::sort(orphan.holders.begin(), orphan.holders.end());
  put_orphan(id, orphan);
}

void CommandRun::put_orphan(InodeId id, const OrphanRecord& orphan) {
  batch_.Put(orphan_key(id).view(), encode(orphan));
}

void CommandRun::remove_orphan(InodeId id) { batch_.Delete(orphan_key(id).view()); }

Result<std::optional<Dentry>> CommandRun::find(InodeId parent, std::string_view name) const {
  return tables_.dentry(parent, name);
}

Result<bool> CommandRun::is_empty_directory(InodeId id) const {
  KVSYNCFS_ASSIGN(auto first, tables_.list(id, 0, 1));
  return first.empty();
}

Result<bool> CommandRun::is_inside(InodeId directory, InodeId above) const {
  constexpr int kDepthMax = 1 << 20;  // a tree this deep has a cycle
  for (int depth = 0; depth < kDepthMax; ++depth) {
    if (directory == above) return true;
    if (directory == kRootInode) return false;
    KVSYNCFS_ASSIGN(Inode inode, tables_.inode(directory));
    directory = inode.parent;
  }
  return Error{Code::kCorrupt, "catalog: a directory is its own ancestor"};
}

void CommandRun::put_dentry(InodeId parent, const Dentry& dentry) {
  batch_.Put(dentry_key(parent, dentry.name).view(), encode_dentry(dentry));
  batch_.Put(cookie_key(parent, dentry.cookie).view(), encode_listing(dentry));
}

void CommandRun::delete_dentry(InodeId parent, const Dentry& dentry) {
  batch_.Delete(dentry_key(parent, dentry.name).view());
  batch_.Delete(cookie_key(parent, dentry.cookie).view());
}

Result<std::optional<std::string>> CommandRun::find_xattr(const StagedInode& staged,
                                                          std::string_view name) const {
  if (staged.inode.xattr_count == 0) return std::optional<std::string>{};
  return tables_.xattr(staged.id, name);
}

Result<std::vector<std::string>> CommandRun::xattr_names(const StagedInode& staged) const {
  if (staged.inode.xattr_count == 0) return std::vector<std::string>{};
  return tables_.xattr_names(staged.id);
}

void CommandRun::put_xattr(StagedInode& staged, std::string_view name, std::string_view value,
                           bool is_new) {
  batch_.Put(xattr_key(staged.id, name).view(), encode_xattr(value));
  if (is_new) ++staged.inode.xattr_count;
  staged.state = StagedInode::State::kChanged;
}

void CommandRun::delete_xattr(StagedInode& staged, std::string_view name) {
  batch_.Delete(xattr_key(staged.id, name).view());
  --staged.inode.xattr_count;
  staged.state = StagedInode::State::kChanged;
}

std::optional<SegmentRecord> CommandRun::find_segment(SegmentId id) const {
  auto staged = segments_.find(id);
  return staged != segments_.end() ? staged->second : tables_.segment(id);
}

void CommandRun::add_live(SegmentId id, std::uint64_t length, bool plus) {
  if (id == kNoSegment) {
    (plus ? reserved_added_ : reserved_removed_) += length;
    return;
  }
  auto [it, is_new] = segments_.try_emplace(id);
  if (is_new) it->second = tables_.segment(id);
  // New extents' segments were checked when they came, so only a damaged catalog has none here;
  // check() reports that, and the extent can still be replaced or removed.
  if (it->second) it->second->live_bytes += plus ? length : -length;
}

Result<std::vector<Extent>> CommandRun::extents(InodeId id, std::uint64_t offset,
                                                std::uint64_t length, std::size_t count_max) const {
  KVSYNCFS_ASSIGN(auto found, tables_.extents(id, offset, length, count_max));
  if (edits_.empty()) return found;
  std::erase_if(found, [&](const Extent& e) { return edits_.contains({id, e.file_offset}); });
  const std::uint64_t end = offset + length;
  // Extents are disjoint: of those that begin before the range only the last can reach into it.
  auto it = edits_.lower_bound({id, offset});
  while (it != edits_.begin() && std::prev(it)->first.first == id)
    if ((--it)->second) break;
  for (; it != edits_.end() && it->first < std::pair(id, end); ++it)
    if (const auto& now = it->second; now && now->file_end() > offset) found.push_back(*now);
  std::sort(found.begin(), found.end());
  return found;
}

Status CommandRun::replace(StagedInode& file, std::uint64_t offset, std::uint64_t length,
                           std::span<const Extent> fresh) {
  std::vector<Extent> old;
  const bool has_none = file.inode.allocated_bytes == 0;
  const auto end = tables_.extents_end(file.id);
  if (!has_none && !(end && offset >= *end)) {
    KVSYNCFS_ASSIGN(old, extents(file.id, offset, length));
  }
  if (old.empty() && fresh.empty()) return {};
  if (!fresh.empty()) tables_.raise_extents_end(file.id, fresh.back().file_end(), has_none);
  ExtentEdit edit = replace_range(old, offset, length, fresh);
  for (const Extent& e : edit.removed) file.inode.allocated_bytes -= e.length;
  for (const Extent& e : edit.added) file.inode.allocated_bytes += e.length;
  file.state = StagedInode::State::kChanged;
  edit_extents(file.id, edit);
  note_change({file.id, offset, length});
  return {};
}

void CommandRun::note_edit(InodeId id, std::uint64_t file_offset, std::optional<Extent> now) {
  if (several_edits_) edits_[{id, file_offset}] = now;
}

void CommandRun::edit_extents(InodeId id, const ExtentEdit& edit) {
  for (const Extent& e : edit.removed) {
    auto again = std::lower_bound(
        edit.added.begin(), edit.added.end(), e,
        [](const Extent& a, const Extent& b) { return a.file_offset < b.file_offset; });
    const bool same_place = again != edit.added.end() && again->file_offset == e.file_offset;
    const bool same_bytes =
        same_place && again->segment == e.segment && again->segment_offset == e.segment_offset;
    if (!same_place) {
      batch_.Delete(extent_key(id, e.file_offset).view());
      note_edit(id, e.file_offset, std::nullopt);
    }
    if (!same_bytes && e.segment != kNoSegment) batch_.Delete(reverse_key(id, e).view());
    add_live(e.segment, e.length, false);
  }
  for (const Extent& e : edit.added) {
    batch_.Put(extent_key(id, e.file_offset).view(), encode_extent(e));
    if (e.segment != kNoSegment) batch_.Put(reverse_key(id, e).view(), encode_length(e.length));
    note_edit(id, e.file_offset, e);
    add_live(e.segment, e.length, true);
  }
}

std::optional<SessionRecord> CommandRun::find_session(NodeId node) const {
  auto staged = sessions_.find(node);
  return staged != sessions_.end() ? staged->second : tables_.session(node);
}

Status CommandRun::enter(const Origin& origin) {
  const auto session = find_session(origin.node);
  if (!session || !session->lives() || session->incarnation != origin.incarnation)
    return Code::kFenced;
  session_ = session->session;
  return {};
}

void CommandRun::note_request(const Origin& origin) {
  if (!enter(origin)) return;
  SessionRecord session = *find_session(origin.node);
  session.last_request = origin.request;
  put_session(origin.node, session);
}

Status CommandRun::commit(Cursor cursor) {
  cursor.inodes = tables_.cursor().inodes + inodes_added_ - inodes_removed_;
  cursor.reserved_bytes = tables_.cursor().reserved_bytes + reserved_added_ - reserved_removed_;
  for (const auto& [node, record] : sessions_) batch_.Put(session_key(node).view(), encode(record));
  for (const auto& [name, record] : holds_) {
    if (record)
      put(hold_key(name), encode(*record));
    else
      erase(hold_key(name));
  }
  KVSYNCFS_TRY(tables_.commit(batch_, inodes_, segments_, cursor));
  tables_.remember_sessions(sessions_);
  tables_.remember_holds(holds_);
  for (const StagedInode& s : inodes_)
    if (s.id == result.inode) result.attributes = s.inode;
  return {};
}

}  // namespace kvsyncfs
