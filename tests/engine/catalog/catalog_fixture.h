// A catalog on a disk in memory, and short words for what the tests do with it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/catalog/catalog.h"
#include "tests/lib/memory_disk.h"

namespace kvsyncfs {

constexpr std::uint32_t kDirectory = 0040000, kRegular = 0100000, kSymlink = 0120000;

/// Command `seconds` is its time.
inline Timestamp at(std::int64_t seconds) { return {seconds, 0}; }

class TestCatalog {
 public:
  TestCatalog() {
    EXPECT_TRUE(disk_.make_directory("/store"));
    EXPECT_TRUE(Catalog::format(disk_, options(), 0, 0, at(1)));
    reopen();
  }

  static CatalogOptions options(bool read_only = false, bool for_check = false) {
    CatalogOptions o;
    o.directory = "/store/catalog";
    o.block_cache_bytes = 4u << 20;
    o.memtable_bytes = 4u << 20;
    o.read_only = read_only;
    o.for_check = for_check;
    return o;
  }

  void close() { catalog_.reset(); }
  /// As after a crash: what was not checkpointed is gone.
  void reopen(bool read_only = false, bool for_check = false) {
    catalog_.reset();
    auto opened = Catalog::open(disk_, options(read_only, for_check));
    ASSERT_TRUE(opened) << describe(opened.error());
    catalog_ = std::move(*opened);
  }

  /// Applies one entry at the next position; it is kept for replay().
  std::vector<CommandResult> apply(std::vector<Command> commands,
                                   std::optional<Origin> origin = {}) {
    log_.push_back({std::move(commands), origin});
    auto results = catalog_->apply({catalog_->applied().value + 1}, log_.back());
    EXPECT_TRUE(results) << describe(results.error());
    return results ? std::move(*results) : std::vector<CommandResult>(log_.back().commands.size());
  }
  CommandResult run(Command command, std::optional<Origin> origin = {}) {
    return apply({std::move(command)}, origin).at(0);
  }
  /// The error code of a command, or no code.
  std::optional<Code> code(Command command, std::optional<Origin> origin = {}) {
    CommandResult result = run(std::move(command), origin);
    if (result.status) return std::nullopt;
    return result.status.error().code;
  }

  /// Hands the whole log to the catalog again, as recovery does.
  void replay() {
    for (std::size_t i = 0; i < log_.size(); ++i) {
      auto results = catalog_->apply({i + 1}, log_[i]);
      ASSERT_TRUE(results) << describe(results.error());
    }
  }
  void checkpoint() {
    auto begun = catalog_->begin_checkpoint();
    ASSERT_TRUE(begun) << describe(begun.error());
    auto durable = catalog_->finish_checkpoint();
    ASSERT_TRUE(durable) << describe(durable.error());
    EXPECT_EQ(durable->value, catalog_->applied().value);
  }
  std::uint32_t digest() { return catalog_->digest().value(); }
  std::vector<std::string> problems() {
    std::vector<std::string> lines;
    CatalogCheckOptions check;
    check.report = [&](const std::string& line) { lines.push_back(line); };
    auto count = catalog_->check(check);
    EXPECT_TRUE(count) << describe(count.error());
    if (count) {
      EXPECT_EQ(*count, lines.size());
    }
    return lines;
  }

  // Short commands. Time: the position.
  Timestamp now() { return at(static_cast<std::int64_t>(1000 + catalog_->applied().value)); }
  CreateCommand creation(InodeId parent, std::string name, std::uint32_t mode) {
    CreateCommand c;
    c.parent = parent;
    c.name = std::move(name);
    c.mode = mode;
    c.time = now();
    if ((mode & kTypeMask) == kSymlink) c.target = "target";
    return c;
  }
  InodeId create(InodeId parent, std::string name, std::uint32_t mode) {
    CommandResult result = run(creation(parent, std::move(name), mode));
    EXPECT_TRUE(result.status) << describe(result.status.error());
    return result.inode;
  }
  InodeId file(std::string name, InodeId parent = kRootInode) {
    return create(parent, std::move(name), kRegular | 0644);
  }
  InodeId directory(std::string name, InodeId parent = kRootInode) {
    return create(parent, std::move(name), kDirectory | 0755);
  }
  UnlinkCommand unlink(std::string name, InodeId parent = kRootInode) {
    return {parent, std::move(name), false, now()};
  }
  UnlinkCommand rmdir(std::string name, InodeId parent = kRootInode) {
    return {parent, std::move(name), true, now()};
  }
  RenameCommand rename(InodeId from, std::string old_name, InodeId to, std::string new_name,
                       RenameMode mode = RenameMode::kReplace) {
    return {from, std::move(old_name), to, std::move(new_name), mode, now()};
  }
  SegmentId segment() { return run(OpenSegmentCommand{}).segment; }
  WriteExtentsCommand write(InodeId inode, std::vector<Extent> extents) {
    WriteExtentsCommand c;
    c.inode = inode;
    c.extents = std::move(extents);
    c.mtime = c.time = now();
    return c;
  }
  SetAttrCommand resize(InodeId inode, std::uint64_t size) {
    SetAttrCommand c;
    c.inode = inode;
    c.size = size;
    c.time = now();
    return c;
  }
  SetXattrCommand set_xattr(InodeId inode, std::string name, std::string value,
                            XattrMode mode = XattrMode::kSet) {
    return {inode, std::move(name), std::move(value), mode, false, now()};
  }
  Inode inode(InodeId id) {
    auto found = catalog_->inode(id);
    EXPECT_TRUE(found);
    return found ? *found : Inode{};
  }
  std::vector<std::string> names(InodeId parent) {
    std::vector<std::string> all;
    for (const Dentry& d : catalog_->list(parent, 0, 1000).value()) all.push_back(d.name);
    return all;
  }
  std::vector<Extent> extents(InodeId id) {
    return catalog_->extents(id, 0, kFileSizeMax, 1000).value();
  }

  Catalog& operator*() { return *catalog_; }
  Catalog* operator->() { return catalog_.get(); }
  MemoryDisk& disk() { return disk_; }
  const std::vector<Transaction>& log() const { return log_; }

 private:
  MemoryDisk disk_;
  std::unique_ptr<Catalog> catalog_;
  std::vector<Transaction> log_;
};

/// Every test ends with a catalog in which fsck finds nothing.
class CatalogTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(catalog.problems(), std::vector<std::string>{}); }
  TestCatalog catalog;
};

}  // namespace kvsyncfs
