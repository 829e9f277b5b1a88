// fsck of the catalog finds what is put into it.
#include <rocksdb/write_batch.h>

#include "engine/catalog/keys.h"
#include "engine/catalog/tables.h"
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

/// A small catalog with one of everything, into which a test writes damage past the commands.
class CatalogFsck : public ::testing::Test {
 protected:
  CatalogFsck() {
    directory = catalog.directory("d");
    file = catalog.file("f", directory);
    segment = catalog.segment();
    catalog.run(catalog.write(file, {{0, 100, segment, 0}, {200, 50, segment, 4096}}));
    catalog.run(SealSegmentCommand{segment, 8192});
    catalog.run(catalog.set_xattr(file, "user.a", "1"));
    EXPECT_TRUE(catalog.problems().empty());
    catalog.checkpoint();
    cookie = catalog->lookup(directory, "f")->cookie;
  }

  /// What fsck says after `damage` was done to the records.
  template <typename F>
  std::vector<std::string> after(F damage) {
    catalog.close();
    {
      auto tables = Tables::open(catalog.disk(), TestCatalog::options(), false).value();
      rocksdb::WriteBatch batch;
      damage(batch);
      EXPECT_TRUE(tables->commit(batch, {}, {}, tables->cursor()));
      EXPECT_TRUE(tables->begin_flush());
      EXPECT_TRUE(tables->finish_flush());
    }
    catalog.reopen();
    return catalog.problems();
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
  InodeId directory, file;
  SegmentId segment;
  std::uint64_t cookie;
};

TEST_F(CatalogFsck, EntryWithoutInode) {
  auto lines = after([&](auto& batch) { batch.Delete(inode_key(file).view()); });
  expect(lines, "names inode " + std::to_string(file.value) + " that does not exist");
  expect(lines, "has an extent and is no file");
  expect(lines, "has an attribute and does not exist");
  expect(lines, "2 inodes exist, not 3");
}

TEST_F(CatalogFsck, InodeWithoutEntry) {
  auto lines = after([&](auto& batch) {
    batch.Delete(dentry_key(directory, "f").view());
    batch.Delete(cookie_key(directory, cookie).view());
  });
  expect(lines, "link count is 0, not 1");
}

TEST_F(CatalogFsck, EntryAndListingDiffer) {
  expect(after([&](auto& batch) { batch.Delete(cookie_key(directory, cookie).view()); }),
         "entry 'f' is not listed");
  expect(after([&](auto& batch) {
           put(batch, cookie_key(directory, 5), encode_listing({file, kRegular, 5, "ghost"}));
         }),
         "lists 'ghost', which is no entry");
}

TEST_F(CatalogFsck, WrongLinkCountAndOrphans) {
  expect(after([&](auto& batch) { put(batch, orphan_key(file), encode_orphan()); }),
         "is an orphan with names");
  Inode inode = catalog.inode(file);
  inode.link_count = 2;
  expect(after([&](auto& batch) { put(batch, inode_key(file), encode(inode)); }),
         "link count is 1, not 2");
}

TEST_F(CatalogFsck, DirectoryCycle) {
  Inode inode = catalog.inode(directory);
  inode.parent = directory;
  auto lines = after([&](auto& batch) {
    put(batch, inode_key(directory), encode(inode));
    batch.Delete(dentry_key(kRootInode, "d").view());
  });
  expect(lines, "cannot be reached from the root");
}

TEST_F(CatalogFsck, ReverseRecordsMissingAndLeftOver) {
  expect(after([&](auto& batch) {
           batch.Delete(reverse_key(file, {0, 100, segment, 0}).view());
         }),
         "extent at 0 has no reverse record");
  expect(after([&](auto& batch) {
           put(batch, reverse_key(file, {900, 1, segment, 77}), encode_length(1));
         }),
         "reverse record at 77 names no extent");
}

TEST_F(CatalogFsck, ExtentsThatOverlapOrPointNowhere) {
  const Extent over{50, 100, segment, 1000}, unknown{700, 1, {55}, 0}, past{800, 1, segment, 8192};
  auto lines = after([&](auto& batch) {
    for (const Extent& e : {over, unknown, past}) {
      put(batch, extent_key(file, e.file_offset), encode_extent(e));
      put(batch, reverse_key(file, e), encode_length(e.length));
    }
  });
  expect(lines, "extents overlap at 50");
  expect(lines, "names segment 55 that does not exist");
  expect(lines, "lies past the end of segment");
  expect(lines, "ends past the size");
  expect(lines, "extents hold");
  expect(lines, "bytes are live, not 150");
}

TEST_F(CatalogFsck, RecordsThatDoNotDecode) {
  auto lines = after([&](auto& batch) {
    put(batch, inode_key({500}), "junk");
    put(batch, segment_key({0xffff}), encode(SegmentRecord{}));
    put(batch, dentry_key(directory, "bad"), "junk");
    put(batch, xattr_key(file, "user.bad"), "");
    put(batch, extent_key(file, 5000), "junk");
    batch.Put("zebra", "");
  });
  expect(lines, "inode 500: record does not decode");
  expect(lines, "an entry does not decode");
  expect(lines, "an attribute does not decode");
  expect(lines, "an extent does not decode");
  expect(lines, "unknown record");
}

TEST_F(CatalogFsck, DamagedRecordsAreErrorsOfTheirReads) {
  after([&](auto& batch) {
    put(batch, inode_key({500}), "junk");
    put(batch, dentry_key(directory, "bad"), "junk");
    put(batch, extent_key(file, 150), "junk");
  });
  EXPECT_EQ(catalog->inode({500}).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog->lookup(directory, "bad").error().code, Code::kCorrupt);
  EXPECT_EQ(catalog->extents(file, 0, 1000, 10).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog.code(catalog.unlink("bad", directory)), Code::kCorrupt);
}

TEST_F(CatalogFsck, DamagedSegmentRecordRefusesToOpen) {
  catalog.close();
  {
    auto tables = Tables::open(catalog.disk(), TestCatalog::options(), false).value();
    rocksdb::WriteBatch batch;
    put(batch, segment_key({7}), "junk");
    EXPECT_TRUE(tables->commit(batch, {}, {}, tables->cursor()));
    EXPECT_TRUE(tables->begin_flush());
    EXPECT_TRUE(tables->finish_flush());
  }
  EXPECT_EQ(Catalog::open(catalog.disk(), TestCatalog::options()).error().code, Code::kCorrupt);
}

TEST_F(CatalogFsck, ProgressEndsAtItsTotal) {
  std::uint64_t done = 0, total = 1;
  ASSERT_TRUE(catalog->check([](const std::string&) {},
                             [&](std::uint64_t d, std::uint64_t t) { done = d, total = t; }));
  EXPECT_GT(done, 10u);
  EXPECT_EQ(done, total);
}

}  // namespace
}  // namespace kvsyncfs
