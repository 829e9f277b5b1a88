// fsck --repair of extents, segments and counts: one kind of damage at a time. What can be known
// is put right at once, what was good stays, and what cannot be known is left and told.
#include "tests/engine/catalog/fsck_fixture.h"

namespace kvsyncfs {
namespace {

TEST_F(CatalogRepair, CountsOfAnInodeAreThoseOfItsRecords) {
  Inode inode = catalog.inode(file);
  inode.allocated_bytes = 1;
  inode.xattr_count = 9;
  inode.size = 220;
  repair([&](auto& batch) { put(batch, inode_key(file), encode(inode)); });
  expect_mended("extents hold 150 bytes, not 1");
  EXPECT_EQ(catalog.inode(file).allocated_bytes, 150u);
  EXPECT_EQ(catalog.inode(file).xattr_count, 1u);
  EXPECT_EQ(catalog.inode(file).size, 250u) << "no byte is cut off";
}

TEST_F(CatalogRepair, AttributesOfNothingAndOnesThatDoNotDecodeGo) {
  repair([&](auto& batch) {
    put(batch, xattr_key({4711}, "user.x"), encode_xattr("1"));
    put(batch, xattr_key(file, "user.bad"), "");
  });
  expect_mended("has an attribute and does not exist");
  EXPECT_EQ(*catalog->xattr_names(file), std::vector<std::string>{"user.a"});
}

TEST_F(CatalogRepair, LiveBytesAndTotalsAreSums) {
  SegmentRecord record = catalog->segment(segment).value();
  record.live_bytes = 5;
  const Cursor wrong{catalog->applied(), 0, 77, 88};
  write([&](auto& batch) {
    put(batch, segment_key(segment), encode(record));
    batch.Put(kCursorKey, encode_cursor(wrong));
  });
  repair([](auto&) {});
  expect_mended("150 bytes are live, not 5");
  EXPECT_EQ(catalog->segment(segment)->live_bytes, 150u);
  EXPECT_EQ(catalog->totals().inodes, 6u);
  EXPECT_EQ(catalog->totals().reserved_bytes, 0u);
}

TEST_F(CatalogRepair, ReverseIndexIsThatOfTheExtents) {
  repair([&](auto& batch) {
    batch.Delete(reverse_key(file, file_extents[0]).view());
    put(batch, reverse_key(file, file_extents[1]), encode_length(7));
    put(batch, reverse_key(file, {900, 1, segment, 77}), encode_length(1));
    put(batch, reverse_key({4711}, {900, 1, segment, 78}), encode_length(1));
    put(batch, reverse_key(file, {901, 1, segment, 79}), "junk");
  });
  expect_mended("extent at 0 has no reverse record");
  expect(mending, "reverse record at 77 names no extent");
  EXPECT_EQ(catalog.extents(file), file_extents);
  EXPECT_EQ(catalog->segment_extents(segment, 0, 10)->size(), 2u);
}

TEST_F(CatalogRepair, HoleIsNotFilledFromTheReverseIndex) {
  repair([&](auto& batch) {
    put(batch, reverse_key(file, {150, 10, segment, 90}), encode_length(10));
  });
  expect_mended("reverse record at 90 names no extent");
  EXPECT_EQ(catalog.extents(file), file_extents);
}

TEST_F(CatalogRepair, ExtentComesBackFromTheReverseIndex) {
  for (const bool junk : {false, true}) {
    repair([&](auto& batch) {
      batch.Delete(extent_key(file, 200).view());
      if (junk) put(batch, extent_key(file, 200), "junk");
    });
    expect_mended(junk ? "the extent at 200 does not decode"
                       : "the extent at 200 is in the reverse index only");
    EXPECT_EQ(catalog.extents(file), file_extents);
  }
}

TEST_F(CatalogRepair, BytesThatNobodyKnowsStayUnreadableAndAreNeverZeros) {
  repair([&](auto& batch) {
    put(batch, extent_key(file, 200), "junk");
    batch.Delete(reverse_key(file, file_extents[1]).view());
  });
  expect_left("(/d/f): the extent at 200 does not decode");
  EXPECT_EQ(catalog->extents(file, 150, 100, 10).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog->extents(file, 0, 100, 10)->size(), 1u);
}

TEST_F(CatalogRepair, ExtentsOverlapUntilSomebodyChooses) {
  const Extent over{50, 100, segment, 1000};
  repair([&](auto& batch) {
    put(batch, extent_key(file, 50), encode_extent(over));
    put(batch, reverse_key(file, over), encode_length(over.length));
  });
  expect_left("(/d/f): extents overlap at 50");
}

TEST_F(CatalogRepair, ExtentsOfWhatIsNoFileGo) {
  const Extent wrong{0, 10, segment, 500};
  repair([&](auto& batch) {
    put(batch, extent_key(below, 0), encode_extent(wrong));
    put(batch, reverse_key(below, wrong), encode_length(10));
    put(batch, extent_key({4711}, 0), encode_extent({0, 10, kNoSegment, 0}));
  });
  expect_mended("(/d/sub): has extents and is no file");
  EXPECT_TRUE(catalog.extents(below).empty());
  EXPECT_EQ(catalog->segment(segment)->live_bytes, 150u);
}

TEST_F(CatalogRepair, SegmentRecordIsMadeAnewForAFileThatIsThere) {
  for (const bool junk : {false, true}) {
    repair([&](auto& batch) {
      batch.Delete(segment_key(segment).view());
      if (junk) put(batch, segment_key(segment), "junk");
    });
    expect_mended(junk ? "record does not decode" : "has extents and a file, but no record");
    EXPECT_EQ(catalog->segment(segment)->state, SegmentState::kOpen);
    EXPECT_EQ(catalog->segment(segment)->live_bytes, 150u);
    EXPECT_EQ(catalog.extents(file), file_extents);
  }
}

TEST_F(CatalogRepair, LostSegmentLeavesItsRangesUnreadableAndNamesTheFiles) {
  files.erase(segment);
  repair([&](auto& batch) { put(batch, segment_key(segment), "junk"); });
  expect_left("(/d/f): bytes 0 to 99 lie in segment " + std::to_string(segment.value));
  EXPECT_EQ(catalog.extents(file), file_extents) << "a hole would read as zeros";
}

TEST_F(CatalogRepair, SegmentEndsWhereItsFileHasTheBytes) {
  const SegmentRecord cut{SegmentState::kSealed, 4096, 150};
  repair([&](auto& batch) { put(batch, segment_key(segment), encode(cut)); });
  expect_mended("bytes 200 to 249 lie past the end of segment");
  EXPECT_EQ(catalog->segment(segment)->state, SegmentState::kOpen);
  files[segment] = 4096;
  repair([&](auto& batch) { put(batch, segment_key(segment), encode(cut)); });
  expect_left("(/d/f): bytes 200 to 249 lie past the end of segment");
}

TEST_F(CatalogRepair, UnknownRecordsGoUnlessTheyMayBeSomebodys) {
  repair([&](auto& batch) { batch.Put("zebra", ""); });
  expect_mended("unknown record of 5 bytes");
}

TEST_F(CatalogRepair, SymlinkIsAsLongAsItsTarget) {
  const InodeId link = catalog.create(kRootInode, "l", kSymlink | 0777);
  catalog.checkpoint();
  Inode inode = catalog.inode(link);
  inode.size = 3;
  repair([&](auto& batch) { put(batch, inode_key(link), encode(inode)); });
  expect_mended("(/l): symlink of 6 bytes says size 3");
}

TEST_F(CatalogRepair, ManyKindsAtOnceNeedOneRepair) {
  Inode inode = catalog.inode(file);
  inode.link_count = 5;
  repair([&](auto& batch) {
    put(batch, inode_key(file), encode(inode));
    batch.Delete(inode_key(directory).view());
    batch.Delete(inode_key(empty).view());
    batch.Delete(dentry_key(kRootInode, "d").view());
    batch.Delete(reverse_key(file, file_extents[0]).view());
    put(batch, segment_key(segment), "junk");
    put(batch, orphan_key(below), encode(OrphanRecord{}));
  });
  expect_mended("has no record, but");
  EXPECT_EQ(catalog->lookup(directory, "f")->inode, file);
  EXPECT_EQ(catalog.extents(file), file_extents);
}

TEST_F(CatalogRepair, WhatIsNotCheckpointedIsNotRepaired) {
  write([&](auto& batch) { batch.Delete(cookie_key(directory, cookie).view()); });
  reopen_for_check();
  catalog.apply({});
  EXPECT_EQ(catalog->repair(options()).value(), 1u);
  catalog.reopen();  // as after a crash
  EXPECT_EQ(catalog.problems().size(), 1u);
}

TEST_F(CatalogRepair, WorkGoesOnAfterIt) {
  repair(cycle());
  const InodeId folder = catalog->lookup(kRootInode, "lost+found")->inode;
  const InodeId fresh = catalog.file("new", folder);
  EXPECT_EQ(catalog.names(folder).back(), "new");
  catalog.run(catalog.write(fresh, {{0, 10, segment, 0}}));
  catalog.run(catalog.rename(folder, "new", directory, "new"));
  EXPECT_TRUE(catalog.problems().empty());
}

}  // namespace
}  // namespace kvsyncfs
