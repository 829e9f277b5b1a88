// One command while it is applied: it reads the catalog, stages its changes, and commits them as
// one.
//
// Nothing is changed before commit(); a command that fails is simply dropped. Thread: apply's.
#pragma once

#include <rocksdb/write_batch.h>

#include <boost/container/static_vector.hpp>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/catalog/extents.h"
#include "engine/catalog/tables.h"

namespace kvsyncfs {

class CommandRun {
 public:
  /// `batch` is empty and borrowed.
  CommandRun(Tables& tables, rocksdb::WriteBatch& batch, Position position, std::uint32_t index)
      : tables_(tables), batch_(batch), id_(id_at(position, index)) {}

  CommandResult result;  ///< `attributes` is filled in by finish()

  std::uint64_t new_id() const { return id_; }
  std::uint64_t new_cookie() const { return id_ + kCookieMin; }

  // Inodes. A pointer stays valid for the whole command; the same id gives the same pointer.
  Result<StagedInode*> load(InodeId id);  ///< kNotFound
  StagedInode& add(InodeId id, Inode inode);
  void remove(StagedInode& staged);
  /// The inode changed: ctime, which never goes back, and the change counter.
  static void touch(StagedInode& staged, const Timestamp& time);
  void add_orphan(InodeId id);  ///< held by every session that lives
  void remove_orphan(InodeId id);
  Result<std::optional<OrphanRecord>> find_orphan(InodeId id) const { return tables_.orphan(id); }
  void put_orphan(InodeId id, const OrphanRecord& orphan);
  bool is_held(const OrphanRecord& orphan) const { return tables_.is_held(orphan); }

  // Records that the command reads and changes whole, once.
  const Tables& tables() const { return tables_; }
  void put(const Key& key, std::string_view value) { batch_.Put(key.view(), value); }
  void erase(const Key& key) { batch_.Delete(key.view()); }

  // Names.
  Result<std::optional<Dentry>> find(InodeId parent, std::string_view name) const;
  Result<bool> is_empty_directory(InodeId id) const;
  /// True when `directory` is `above` or lies somewhere below it. Errors: kCorrupt (a cycle),
  /// kNotFound.
  Result<bool> is_inside(InodeId directory, InodeId above) const;
  void put_dentry(InodeId parent, const Dentry& dentry);
  void delete_dentry(InodeId parent, const Dentry& dentry);

  // Extended attributes.
  Result<std::optional<std::string>> find_xattr(const StagedInode& staged,
                                                std::string_view name) const;
  Result<std::vector<std::string>> xattr_names(const StagedInode& staged) const;
  void put_xattr(StagedInode& staged, std::string_view name, std::string_view value, bool is_new);
  void delete_xattr(StagedInode& staged, std::string_view name);

  // Extents. A command that edits more than one range says so first, so that it sees its own edits.
  void expect_several_edits() { several_edits_ = true; }
  Result<std::vector<Extent>> extents(InodeId id, std::uint64_t offset, std::uint64_t length,
                                      std::size_t count_max = SIZE_MAX) const;
  /// [offset, offset + length) becomes `fresh`, with all the accounts.
  Status replace(StagedInode& file, std::uint64_t offset, std::uint64_t length,
                 std::span<const Extent> fresh);
  /// Deletes and puts extent records and keeps the segments' accounts; not the inode's.
  void edit_extents(InodeId id, const ExtentEdit& edit);
  /// For the observer: what edit_extents changed.
  void note_change(const ExtentChange& change) { extent_changes_.push_back(change); }

  // Segments.
  std::optional<SegmentRecord> find_segment(SegmentId id) const;
  void put_segment(SegmentId id, const SegmentRecord& record) { segments_[id] = record; }
  void delete_segment(SegmentId id) { segments_[id] = std::nullopt; }

  // Holds on segments.
  Holds holds() const { return tables_.holds(); }
  void put_hold(const std::string& name, HoldRecord record) { holds_[name] = std::move(record); }
  void erase_hold(const std::string& name) { holds_[name] = std::nullopt; }

  // Sessions.
  /// From now on the command is one of that session. Errors: kFenced (it does not live).
  Status enter(const Origin& origin);
  /// The session that it is of; nothing: of none.
  std::optional<SessionId> session() const { return session_; }
  /// The origin's request is applied with this commit; nothing where its session has just ended.
  void note_request(const Origin& origin);
  std::optional<SessionRecord> find_session(NodeId node) const;
  void put_session(NodeId node, const SessionRecord& record) { sessions_[node] = record; }
  std::size_t session_count() const { return tables_.sessions().size(); }
  Position position() const { return position_of(id_); }

  /// Writes everything. `cursor` comes with the place; the totals are filled in here.
  Status commit(Cursor cursor);
  /// Ranges whose extents changed, for the observer.
  std::span<const ExtentChange> extent_changes() const { return extent_changes_; }
  /// Those that were read, too.
  std::span<const StagedInode> inodes() const { return {inodes_.data(), inodes_.size()}; }

 private:
  static constexpr std::size_t kStagedMax = 4;  // a rename: two parents, two inodes

  void add_live(SegmentId id, std::uint64_t length, bool plus);
  void note_edit(InodeId id, std::uint64_t file_offset, std::optional<Extent> now);

  Tables& tables_;
  rocksdb::WriteBatch& batch_;
  std::uint64_t id_;
  std::optional<SessionId> session_;
  boost::container::static_vector<StagedInode, kStagedMax> inodes_;
  StagedSegments segments_;
  std::map<NodeId, SessionRecord> sessions_;
  StagedHolds holds_;
  std::uint64_t inodes_added_ = 0, inodes_removed_ = 0, reserved_added_ = 0, reserved_removed_ = 0;
  std::vector<ExtentChange> extent_changes_;
  bool several_edits_ = false;
  std::map<std::pair<InodeId, std::uint64_t>, std::optional<Extent>> edits_;  ///< nothing: deleted
};

}  // namespace kvsyncfs
