// fsck of the catalog's records against each other. Needs about 100 bytes of memory per inode.
// Thread: one; the catalog must not change meanwhile.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/catalog/tables.h"

namespace kvsyncfs {

class CatalogCheck {
 public:
  using Report = std::function<void(const std::string&)>;
  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

  CatalogCheck(const Tables& tables, const Report& report, const Progress& progress);

  /// Count of problems. Errors: kIo, kCorrupt (RocksDB cannot read its own files).
  Result<std::uint64_t> run();

 private:
  enum class Walk : std::uint8_t { kNew, kOnPath, kReached, kLost };
  /// What an inode says of itself, and what the other records say of it.
  struct Found {
    std::uint32_t mode = 0, link_count = 0, xattr_count = 0;
    std::uint64_t size = 0, allocated_bytes = 0;
    InodeId parent;
    std::uint64_t extent_bytes = 0;
    std::uint32_t names = 0, subdirectories = 0, xattrs = 0;
    bool orphan = false;
    Walk walk = Walk::kNew;
  };
  struct FoundSegment {
    SegmentRecord record;
    std::uint64_t live_bytes = 0;
  };

  template <typename... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args);
  void step();
  Found* find(InodeId id);
  Status visit(std::string_view key, std::string_view value);
  void visit_inode(std::string_view key, std::string_view value);
  void visit_segment(std::string_view key, std::string_view value);
  Status visit_dentry(std::string_view key, std::string_view value);
  Status visit_listing(std::string_view key, std::string_view value);
  void visit_xattr(std::string_view key, std::string_view value);
  Status visit_extent(std::string_view key, std::string_view value);
  Status check_target(InodeId id, const Extent& extent);
  Status visit_reverse(std::string_view key, std::string_view value);
  void visit_orphan(std::string_view key);
  void finish_inodes();
  bool reaches_root(InodeId id);
  void finish_segments();
  void finish_totals();

  const Tables& tables_;
  const Report& report_;
  const Progress& progress_;
  std::uint64_t total_, done_ = 0, problems_ = 0;
  std::unordered_map<InodeId, Found> inodes_;
  std::unordered_map<SegmentId, FoundSegment> segments_;
  InodeId last_inode_;
  std::uint64_t last_end_ = 0, reserved_bytes_ = 0;
};

}  // namespace kvsyncfs
