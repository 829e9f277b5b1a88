// What fsck would write to mend a catalog, gathered while it looks. Nothing is changed before
// commit(), and then all at once: one atomic write that carries the cursor, as a command's does.
// Where two changes meet on one key the later one counts. Thread: one.
#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "engine/catalog/tables.h"

namespace kvsyncfs {

class Mending {
 public:
  explicit Mending(const Tables& tables) : tables_(tables) {}

  void put(std::string_view key, std::string_view value) { batch_.Put(key, value); }
  void erase(std::string_view key) { batch_.Delete(key); }

  /// The inode's record, to be changed; valid until commit(). Errors: kNotFound, kCorrupt, kIo.
  Result<Inode*> edit(InodeId id);
  /// The same of an inode that has no record.
  Inode& make(InodeId id);

  void put_entry(InodeId parent, const Dentry& dentry);
  void erase_entry(InodeId parent, const Dentry& dentry);
  /// A cookie of `parent` that no entry has, `highest` or below: later ones are for later entries.
  /// Errors: kCorrupt (all are taken), kIo.
  Result<std::uint64_t> free_cookie(InodeId parent, std::uint64_t highest);

  void put_extent(InodeId id, const Extent& extent);
  void erase_extent(InodeId id, const Extent& extent);
  void put_segment(SegmentId id, const SegmentRecord& record) { segments_[id] = record; }

  /// Errors: kIo, kNoSpace.
  Status commit(Tables& tables, const Cursor& cursor);

 private:
  const Tables& tables_;
  rocksdb::WriteBatch batch_;
  std::map<InodeId, StagedInode> inodes_;
  StagedSegments segments_;
  std::set<std::pair<InodeId, std::uint64_t>> cookies_;  ///< given out by free_cookie
};

}  // namespace kvsyncfs
