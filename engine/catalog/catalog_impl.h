// The Catalog over Tables. Thread: as catalog.h says.
#pragma once

#include <rocksdb/write_batch.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/catalog/catalog.h"
#include "engine/catalog/command_run.h"
#include "engine/catalog/tables.h"

namespace kvsyncfs {

class RocksCatalog final : public Catalog {
 public:
  RocksCatalog(Disk& disk, std::unique_ptr<Tables> tables, const CatalogOptions& options);

  Result<std::vector<CommandResult>> apply(Position position,
                                           const Transaction& transaction) override;
  Position applied() const override { return {applied_.load(std::memory_order_acquire)}; }
  void set_extent_observer(std::function<void(const ExtentChange&)> observer) override {
    extent_observer_ = std::move(observer);
  }
  void set_inode_observer(std::function<void(InodeId)> observer) override {
    inode_observer_ = std::move(observer);
  }

  Result<Inode> inode(InodeId id) const override { return tables_->inode(id); }
  Result<Dentry> lookup(InodeId parent, std::string_view name) const override;
  Result<std::vector<Dentry>> list(InodeId parent, std::uint64_t after,
                                   std::size_t count_max) const override;
  Result<std::string> xattr(InodeId id, std::string_view name) const override;
  Result<std::vector<std::string>> xattr_names(InodeId id) const override {
    return tables_->xattr_names(id);
  }
  Result<std::vector<Extent>> extents(InodeId id, std::uint64_t offset, std::uint64_t length,
                                      std::size_t count_max) const override;
  Result<SegmentRecord> segment(SegmentId id) const override;
  Result<std::vector<std::pair<SegmentId, SegmentRecord>>> segments() const override {
    return tables_->segments();
  }
  Result<std::vector<std::pair<InodeId, Extent>>> segment_extents(
      SegmentId id, std::uint64_t from_offset, std::size_t count_max) const override;
  Result<std::vector<InodeId>> orphans() const override { return tables_->orphans(); }
  Result<LockTable> locks(InodeId id, LockKind kind) const override {
    return tables_->locks(id, kind);
  }
  Result<std::vector<std::pair<InodeId, LockKind>>> locked_by(SessionId session) const override {
    return tables_->locked_by(session);
  }
  Result<std::optional<OrphanRecord>> orphan(InodeId id) const override {
    return tables_->orphan(id);
  }
  Result<std::vector<InodeId>> reclaimable_orphans(std::size_t count_max) const override {
    return tables_->reclaimable_orphans(count_max);
  }
  std::map<NodeId, SessionRecord> sessions() const override { return tables_->sessions(); }
  Holds holds() const override { return tables_->holds(); }
  CatalogTotals totals() const override { return tables_->totals(); }

  std::uint64_t memtable_bytes() const override { return tables_->memtable_bytes(); }
  Status begin_checkpoint() override;
  Result<Position> finish_checkpoint(const std::function<bool()>& gives_up) override;

  Result<std::unique_ptr<CatalogSnapshot>> snapshot() override;
  Status reopen(const std::string& directory) override;

  HistoryDigest history() const override;
  std::optional<std::uint32_t> history_at(Position position) const override;
  Result<std::uint32_t> digest() const override;
  Result<std::uint64_t> check(const CatalogCheckOptions& options) const override;
  Result<std::uint64_t> repair(const CatalogCheckOptions& options) override;
  Result<std::unordered_map<InodeId, std::string>> paths(
      const std::unordered_set<InodeId>& ids) const override;

 private:
  Result<CommandResult> apply_one(Position position, std::uint32_t index,
                                  const Transaction& transaction);
  Result<CommandResult> skip_failed(const Error& error, const Cursor& cursor, bool last,
                                    const std::optional<Origin>& origin);
  bool is_verdict(Code code) const;
  bool has_had(const Origin& origin) const;
  void note_applied(Position position);

  Disk& disk_;
  CatalogOptions options_;  ///< its folder changes with reopen()
  std::unique_ptr<Tables> tables_;
  const bool read_only_, for_check_;
  std::function<void(const ExtentChange&)> extent_observer_;
  std::function<void(InodeId)> inode_observer_;
  rocksdb::WriteBatch batch_;    ///< of the command being applied; kept for its memory
  std::optional<Error> failed_;  ///< of an apply: nothing can be applied any more
  std::atomic<std::uint64_t> applied_;
  Position begun_;              ///< begin_checkpoint ran here
  bool is_unfinished_ = false;  ///< nobody waited for the end of the checkpoint that began last
  Position durable_;

  mutable std::mutex history_mutex_;   ///< a leaf; guards the next
  std::deque<HistoryDigest> history_;  ///< the newest last
};

}  // namespace kvsyncfs
