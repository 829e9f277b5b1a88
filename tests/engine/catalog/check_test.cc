// fsck of the catalog finds what is put into it.
#include "tests/engine/catalog/fsck_fixture.h"

namespace kvsyncfs {
namespace {

TEST_F(CatalogFsck, EntryWithoutInode) {
  auto lines = after([&](auto& batch) { batch.Delete(inode_key(empty).view()); });
  expect(lines, "entry 'e' names inode " + std::to_string(empty.value) + " that does not exist");
  expect(lines, "has an attribute and does not exist");
  expect(lines, "4 inodes exist, not 5");
}

TEST_F(CatalogFsck, InodeWithoutEntry) {
  auto lines = after([&](auto& batch) {
    batch.Delete(dentry_key(directory, "f").view());
    batch.Delete(cookie_key(directory, cookie).view());
  });
  expect(lines, "has no name and is no orphan");
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
  expect(after([&](auto& batch) { put(batch, orphan_key(file), encode(OrphanRecord{})); }),
         "is an orphan with names");
  Inode inode = catalog.inode(file);
  inode.link_count = 2;
  expect(after([&](auto& batch) { put(batch, inode_key(file), encode(inode)); }),
         "link count is 1, not 2");
}

TEST_F(CatalogFsck, ProblemsNameThePath) {
  Inode inode = catalog.inode(file);
  inode.link_count = 9;
  const auto lines = after([&](auto& batch) {
    put(batch, inode_key(file), encode(inode));
    put(batch, cookie_key(directory, 5), encode_listing({file, kRegular, 5, "bad\nname"}));
  });
  expect(lines, "inode " + std::to_string(file.value) + " (/d/f): link count");
  expect(lines, "directory " + std::to_string(directory.value) + " (/d): lists 'bad\\x0aname'");
}

TEST_F(CatalogFsck, DirectoryCycle) {
  auto lines = after(cycle());
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
  expect(lines, "(/d/f): bytes 700 to 700 lie in segment 55 that does not exist");
  expect(lines, "bytes 800 to 800 lie past the end of segment");
  expect(lines, "an extent ends past the size");
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
  expect(lines, "(/d): the entry 'bad' does not decode");
  expect(lines, "the attribute 'user.bad' does not decode");
  expect(lines, "the extent at 5000 does not decode");
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
}

TEST_F(CatalogFsck, DamagedRecordThatACommandNeedsEndsTheApply) {
  write([&](auto& batch) { put(batch, dentry_key(directory, "bad"), "junk"); });
  catalog.reopen();
  const Position next{catalog->applied().value + 1};
  const Transaction damaged{{catalog.unlink("bad", directory)}},
      good{{catalog.unlink("e", directory)}};
  EXPECT_EQ(catalog->apply(next, damaged).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog->applied(), Position{next.value - 1}) << "another replica may go on from here";
  EXPECT_EQ(catalog->apply(next, good).error().code, Code::kCorrupt) << "nothing stands on it";
  reopen_for_check();
  EXPECT_EQ(catalog.code(damaged.commands[0]), Code::kCorrupt) << "fsck goes on to mend it";
}

TEST_F(CatalogFsck, DamagedSegmentRecordRefusesToOpenButForTheCheck) {
  write([&](auto& batch) { put(batch, segment_key({7}), "junk"); });
  EXPECT_EQ(Catalog::open(catalog.disk(), TestCatalog::options()).error().code, Code::kCorrupt);
  reopen_for_check();
  expect(catalog.problems(), "segment 7: record does not decode");
}

TEST_F(CatalogFsck, RecordsOfANewerVersionMayBeSomebodys) {
  after([&](auto& batch) { batch.Put("zebra", ""); });
  CatalogCheckOptions options;
  options.knows_all_records = false;
  EXPECT_EQ(catalog->check(options).value(), 0u);
}

TEST_F(CatalogFsck, ProgressEndsAtItsTotal) {
  std::uint64_t done = 0, total = 1;
  CatalogCheckOptions options;
  options.progress = [&](std::uint64_t d, std::uint64_t t) { done = d, total = t; };
  ASSERT_TRUE(catalog->check(options));
  EXPECT_GT(done, 10u);
  EXPECT_EQ(done, total);
}

}  // namespace
}  // namespace kvsyncfs
