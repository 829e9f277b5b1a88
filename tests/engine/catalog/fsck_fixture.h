// A small catalog with one of everything, into which a test writes damage past the commands.
#pragma once

#include <rocksdb/write_batch.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/catalog/keys.h"
#include "engine/catalog/tables.h"
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {

/// /d/f (two extents and an attribute), /d/e (empty, an attribute) and the directory /d/sub.
class CatalogFsck : public ::testing::Test {
 protected:
  using Damage = std::function<void(rocksdb::WriteBatch&)>;

  CatalogFsck() {
    directory = catalog.directory("d");
    file = catalog.file("f", directory);
    segment = catalog.segment();
    catalog.run(catalog.write(file, {{0, 100, segment, 0}, {200, 50, segment, 4096}}));
    catalog.run(SealSegmentCommand{segment, 8192});
    catalog.run(catalog.set_xattr(file, "user.a", "1"));
    empty = catalog.file("e", directory);
    catalog.run(catalog.set_xattr(empty, "user.b", "2"));
    below = catalog.directory("sub", directory);
    EXPECT_TRUE(catalog.problems().empty());
    catalog.checkpoint();
    cookie = catalog->lookup(directory, "f")->cookie;
  }

  void write(const Damage& damage) {
    catalog.close();
    CatalogOptions options = TestCatalog::options();
    options.for_check = true;
    auto tables = Tables::open(catalog.disk(), options, false).value();
    rocksdb::WriteBatch batch;
    damage(batch);
    EXPECT_TRUE(tables->commit(batch, {}, {}, tables->cursor()));
    EXPECT_TRUE(tables->begin_flush());
    EXPECT_TRUE(tables->finish_flush([] { return false; }));
  }
  void reopen_for_check() { catalog.reopen(false, true); }
  /// What fsck says after `damage` was done to the records.
  std::vector<std::string> after(const Damage& damage) {
    write(damage);
    catalog.reopen();
    return catalog.problems();
  }
  /// /d/sub holds /d, and nothing else does.
  Damage cycle() {
    Inode inode = catalog.inode(directory);
    inode.parent = below;
    const Dentry in_root = catalog->lookup(kRootInode, "d").value();
    const Dentry in_sub{directory, kDirectory, in_root.cookie, "d"};
    return [=, this](rocksdb::WriteBatch& batch) {
      put(batch, inode_key(directory), encode(inode));
      batch.Delete(dentry_key(kRootInode, "d").view());
      batch.Delete(cookie_key(kRootInode, in_root.cookie).view());
      put(batch, dentry_key(below, "d"), encode_dentry(in_sub));
      put(batch, cookie_key(below, in_sub.cookie), encode_listing(in_sub));
    };
  }
  static void put(rocksdb::WriteBatch& batch, const Key& key, const std::string& value) {
    batch.Put(key.view(), value);
  }
  static void expect(const std::vector<std::string>& lines, std::string_view part) {
    bool found = false;
    for (const std::string& line : lines) found |= line.find(part) != line.npos;
    EXPECT_TRUE(found) << part << " is not among " << ::testing::PrintToString(lines);
  }

  TestCatalog catalog;
  InodeId directory, file, empty, below;
  SegmentId segment;
  std::uint64_t cookie;
};

/// The same, with /good, whose bytes nothing may change, and what there is of segment files.
class CatalogRepair : public CatalogFsck {
 protected:
  CatalogRepair() {
    good = catalog.file("good");
    catalog.apply({OpenSegmentCommand{}, OpenSegmentCommand{}});
    good_segment = catalog.segment();
    catalog.run(
        catalog.write(good, {{0, 300, good_segment, 4096}, {4096, 50, good_segment, 8192}}));
    catalog.run(SealSegmentCommand{good_segment, 12288});
    files[segment] = 8192;
    files[good_segment] = 12288;
    catalog.checkpoint();
    file_extents = catalog.extents(file);
    good_extents = catalog.extents(good);
  }

  CatalogCheckOptions options() {
    CatalogCheckOptions check;
    check.report = [this](const std::string& line) { told.push_back(line); };
    check.segment_file = [this](SegmentId id) -> std::optional<std::uint64_t> {
      const auto found = files.find(id);
      if (found == files.end()) return std::nullopt;
      return found->second;
    };
    return check;
  }
  /// Damages the catalog, repairs it, and looks again after a restart.
  void repair(const Damage& damage) {
    write(damage);
    reopen_for_check();
    catalog.apply({});
    told.clear();
    const auto mended = catalog->repair(options());
    ASSERT_TRUE(mended) << describe(mended.error());
    EXPECT_EQ(*mended, told.size());
    mending = told;
    catalog.checkpoint();
    reopen_for_check();
    told.clear();
    left = catalog->check(options()).value();
    EXPECT_EQ(left, told.size());
    EXPECT_EQ(catalog->lookup(kRootInode, "good")->inode, good);
    EXPECT_EQ(catalog.extents(good), good_extents);
    // Nothing is left to do: a second repair changes no byte.
    const std::uint32_t digest = catalog.digest();
    catalog.apply({});
    EXPECT_EQ(catalog->repair(options()).value(), 0u);
    EXPECT_EQ(catalog.digest(), digest);
  }
  void expect_mended(std::string_view part) {
    expect(mending, part);
    EXPECT_EQ(left, 0u) << ::testing::PrintToString(told);
  }
  void expect_left(std::string_view part) {
    EXPECT_GT(left, 0u);
    expect(told, part);
  }
  /// The one entry of /lost+found.
  Dentry found_again() {
    const auto folder = catalog->lookup(kRootInode, "lost+found");
    if (!folder) return {};
    EXPECT_EQ(catalog.inode(folder->inode).mode, kDirectory | 0700u);
    const auto entries = catalog->list(folder->inode, 0, 10).value();
    EXPECT_EQ(entries.size(), 1u);
    return entries.empty() ? Dentry{} : entries[0];
  }
  static std::string number(InodeId id) { return "#" + std::to_string(id.value); }

  InodeId good;
  SegmentId good_segment;
  std::vector<Extent> file_extents, good_extents;
  std::map<SegmentId, std::uint64_t> files;
  std::vector<std::string> told, mending;
  std::uint64_t left = 0;
};

}  // namespace kvsyncfs
