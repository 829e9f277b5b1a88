// fsck of the catalog's records against each other, and what would mend them. Needs about 200 bytes
// of memory per inode. Thread: one; the catalog must not change meanwhile.
//
// One pass over all records counts what they say of each other; then each inode and segment is
// settled. Every problem is told, and where the right value follows from the other records (and
// nothing good is lost by it) its mending is gathered, and the counts go on as if it were done. So
// a look and a repair find the same, and one repair is enough.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/catalog/mending.h"
#include "engine/catalog/tables.h"

namespace kvsyncfs {

class CatalogCheck {
 public:
  /// `spare_id`: for a lost+found that has to be made; no record has it. Both are borrowed.
  CatalogCheck(const Tables& tables, const CatalogCheckOptions& options, InodeId spare_id);

  /// Looks, once. Errors: kIo, kCorrupt (RocksDB cannot read its own files).
  Status run();
  std::uint64_t problem_count() const { return problems_.size(); }
  std::uint64_t mendable_count() const;
  /// Writes the mending of all that can be mended. Errors: kIo, kNoSpace.
  Status mend(Tables& tables);
  /// Tells the problems, with the paths that the catalog has now; `mended_only`: of what mend()
  /// did.
  Status tell(bool mended_only) const;

 private:
  enum class Mends : std::uint8_t { kNo, kYes };
  enum class Of : std::uint8_t { kInode, kDirectory, kSegment, kCatalog };
  struct Problem {
    Of of;
    Mends mends;
    std::uint64_t number;
    std::string text;
  };
  enum class Walk : std::uint8_t { kNew, kOnPath, kReached };
  /// What an inode says of itself, and what the other records say of it.
  struct Found {
    std::uint32_t mode = 0, link_count = 0, xattr_count = 0;
    std::uint64_t size = 0, allocated_bytes = 0;
    InodeId parent;
    std::uint64_t extent_bytes = 0, data_end = 0;
    std::uint32_t names = 0, subdirectories = 0, entries = 0, xattrs = 0;
    bool exists = false;       ///< has a record, or is going to have one
    bool made = false;         ///< that record is new
    bool undecodable = false;  ///< it has one that does not decode
    bool orphan = false;
    bool changed = false;  ///< its record is not what it should be
    Walk walk = Walk::kNew;
  };
  struct FoundSegment {
    SegmentRecord record;
    std::uint64_t live_bytes = 0;
    bool changed = false;  ///< to be sealed anew, where its batches end
  };
  struct Named {
    InodeId parent;
    Dentry dentry;
  };
  using ExtentPlace = std::pair<InodeId, std::uint64_t>;  ///< and the offset in the file

  template <typename... Args>
  void problem(Mends mends, Of of, std::uint64_t number, fmt::format_string<Args...> format,
               Args&&... args) {
    problems_.push_back({of, mends, number, fmt::format(format, std::forward<Args>(args)...)});
  }
  void step();
  Found* find(InodeId id);  ///< that exists
  static bool is_directory(const Found& found) { return (found.mode & kTypeMask) == 0040000; }
  static bool is_regular(const Found& found) { return (found.mode & kTypeMask) == 0100000; }
  /// Waits to be reclaimed, and nothing speaks against it.
  static bool is_true_orphan(const Found& found) {
    return found.orphan && found.link_count == 0 && found.names == 0 && found.entries == 0;
  }

  // check.cc
  Status visit(std::string_view key, std::string_view value);
  void visit_inode(std::string_view key, std::string_view value);
  void visit_xattr(std::string_view key, std::string_view value);
  void visit_orphan(std::string_view key, std::string_view value);
  Status settle_missing();
  void make_record(InodeId id, Found& found);
  Status drop_missing(InodeId id, Found& found);
  Status settle_inodes();
  Status settle_inode(InodeId id, Found& found);
  Status write_inode(InodeId id, const Found& found, std::uint64_t links);
  void settle_totals();

  // check_names.cc
  Status visit_dentry(std::string_view key, std::string_view value);
  Status check_listing(InodeId parent, Dentry& dentry);
  Status visit_listing(std::string_view key, std::string_view value);
  void settle_entry(InodeId parent, const Dentry& dentry);
  void drop_entry(InodeId parent, const Dentry& dentry);
  void settle_second_names();
  void settle_listings();
  Status settle_cycles();
  bool reaches_root(InodeId id, InodeId* on_cycle);
  Status settle_nameless();
  Result<InodeId> lost_and_found();
  Status give_name(InodeId id, Found& found);

  // check_extents.cc
  void visit_segment(std::string_view key, std::string_view value);
  Status visit_extent(std::string_view key, std::string_view value);
  void account(Found& found, const Extent& extent, bool plus);
  Status check_target(InodeId id, const Extent& extent);
  FoundSegment* find_segment(SegmentId id);
  Status visit_reverse(std::string_view key, std::string_view value);
  Status drop_extents(InodeId id, Found& found);
  void settle_bad_extents();
  Status settle_lost_extents();
  Result<bool> fits(InodeId id, const Found& found, std::span<const Extent> lost) const;
  void settle_segments();

  // check_cluster.cc
  void visit_session(std::string_view key, std::string_view value);
  void visit_hold(std::string_view key, std::string_view value);
  void visit_locks(std::string_view key, std::string_view value);
  void visit_lock_index(std::string_view key, std::string_view value);
  void check_lock(InodeId id, const FileLock& lock);
  void settle_lock_index();

  const Tables& tables_;
  const CatalogCheckOptions& options_;
  const InodeId spare_id_;
  Mending mending_;
  std::vector<Problem> problems_;
  std::uint64_t total_, done_ = 0;
  std::unordered_map<InodeId, Found> inodes_;
  std::unordered_map<SegmentId, FoundSegment> segments_;
  InodeId last_inode_;
  std::uint64_t last_end_ = 0;
  std::uint64_t inode_count_ = 0, reserved_found_ = 0;  ///< as the records are
  std::uint64_t reserved_bytes_ = 0;                    ///< as they are going to be
  InodeId lost_and_found_;
  bool has_sessions_ = false;
  using Index = std::map<std::string, std::string, std::less<>>;
  Index lock_index_, wanted_lock_index_;  ///< as it is, and as the lock tables say
  bool has_damaged_locks_ = false;

  std::vector<Named> undecided_;      ///< entries in or of an inode without a record
  std::vector<Named> second_names_;   ///< of a directory, not from where it says that it is
  std::vector<Named> lone_listings_;  ///< without an entry that decodes
  std::set<ExtentPlace> bad_extents_;
  std::map<ExtentPlace, std::vector<Extent>> reverse_of_bad_;
  std::map<InodeId, std::vector<Extent>> lost_extents_;  ///< in the reverse index only
};

}  // namespace kvsyncfs
