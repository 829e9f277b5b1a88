#include <algorithm>

#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

class SegmentStoreSpace : public StoreTest {
 protected:
  /// Reserves pages until that is refused; returns how many it were.
  std::uint64_t reserve_all() {
    std::uint64_t pages = 0;
    for (;; ++pages) {
      const Status reserved = store_->reserve(kPageSize);
      if (reserved) continue;
      EXPECT_EQ(reserved.error().code, Code::kNoSpace);
      return pages;
    }
  }
  std::uint64_t segment_files() {
    const auto names = files();
    return static_cast<std::uint64_t>(std::count_if(
        names.begin(), names.end(), [](const auto& name) { return name.ends_with(".seg"); }));
  }
};

TEST_F(SegmentStoreSpace, ReserveEndsAtTheStoresSize) {
  make();
  const std::uint64_t pages = reserve_all();
  // 64 segments of 63 data pages, less two for the cleaner, one for checksum pages of small
  // appends.
  EXPECT_GE(pages, 61 * 62u);
  EXPECT_LE(pages, 62 * 63u);
  EXPECT_LE(bytes_on_disk(), options_.size_bytes);
  EXPECT_EQ(store_->counters().files_bytes, bytes_on_disk());
}

TEST_F(SegmentStoreSpace, ReservedBytesAreAllocated) {
  make();
  ASSERT_TRUE(store_->reserve(10 * kSegmentSize));
  EXPECT_GE(bytes_on_disk(), 12 * kSegmentSize);  // and the cleaner's two
  disk_.faults.disk_is_full = true;
  append({random_bytes(10 * kSegmentSize, 1)});  // fails the test if it is refused
}

TEST_F(SegmentStoreSpace, WhatIsReservedFitsPageByPage) {
  options_.size_bytes = 8 * kSegmentSize;
  make();
  const std::uint64_t pages = reserve_all();
  ASSERT_GT(pages, 0u);
  const std::string page = random_bytes(kPageSize, 1);
  // The worst case is one segment's worth of single pages; the rest comes in large flushes.
  const std::uint64_t small = std::min<std::uint64_t>(pages, 64);
  append({random_bytes((pages - small) * kPageSize, 2)});
  for (std::uint64_t i = 0; i < small; ++i) append({page});
  EXPECT_LE(bytes_on_disk(), options_.size_bytes);
}

TEST_F(SegmentStoreSpace, UnreserveGivesBack) {
  make();
  const std::uint64_t pages = reserve_all();
  store_->unreserve(100 * kPageSize);
  EXPECT_EQ(reserve_all(), 100u);
  store_->unreserve((pages)*kPageSize);
  EXPECT_EQ(reserve_all(), pages);
}

TEST_F(SegmentStoreSpace, RefusedReserveReservesNothing) {
  make();
  EXPECT_EQ(store_->reserve(options_.size_bytes).error().code, Code::kNoSpace);
  EXPECT_LE(bytes_on_disk(), 2 * kSegmentSize);  // and allocates nothing for it
  EXPECT_GT(reserve_all(), 61 * 62u);
}

TEST_F(SegmentStoreSpace, FreeBytesIsWhatCanBeReserved) {
  make();
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t before = store_->free_bytes();
    const std::uint64_t pages = reserve_all();
    EXPECT_NEAR(static_cast<double>(before / kPageSize), static_cast<double>(pages), 1.0);
    EXPECT_EQ(store_->free_bytes(), 0u);
    store_->unreserve(pages * kPageSize);
    append({random_bytes(20 * kSegmentSize / 2, 1)});
  }
}

TEST_F(SegmentStoreSpace, CleanerWorksWhenUsersAreRefused) {
  make();
  const std::uint64_t pages = reserve_all();
  append({random_bytes(pages * kPageSize, 1)});
  store_->unreserve(pages * kPageSize);
  EXPECT_EQ(store_->reserve(2 * kSegmentSize).error().code, Code::kNoSpace);
  // A whole segment's bytes can always be moved, then the victim goes, over and over.
  for (std::uint64_t victim = 1; victim < 30; ++victim) {
    append({random_bytes(62 * kPageSize, victim)}, Stream::kCleaner);
    ASSERT_TRUE(store_->remove(SegmentId{victim}));
  }
  EXPECT_LE(bytes_on_disk(), options_.size_bytes);
}

TEST_F(SegmentStoreSpace, CleanerLeavesWhatUsersReserved) {
  make();
  const std::uint64_t pages = reserve_all();
  const std::string segment = random_bytes(63 * kPageSize, 1);
  const Bytes run = as_bytes(segment);
  std::uint64_t moved = 0;
  for (;; ++moved) {
    const auto placed = store_->append(Stream::kCleaner, {&run, 1});
    if (placed) continue;
    EXPECT_EQ(placed.error().code, Code::kNoSpace);
    break;
  }
  EXPECT_GE(moved, 2u);
  append({random_bytes(pages * kPageSize, 2)});
}

TEST_F(SegmentStoreSpace, RemovedSegmentsMakeRoom) {
  make();
  const std::uint64_t pages = reserve_all();
  append({random_bytes(pages * kPageSize, 1)});
  store_->unreserve(pages * kPageSize);
  EXPECT_LT(reserve_all(), 200u);
  for (std::uint64_t id = 1; id <= 20; ++id) ASSERT_TRUE(store_->remove(SegmentId{id}));
  EXPECT_GE(reserve_all(), 20 * 60u);
}

TEST_F(SegmentStoreSpace, UnwantedSegmentsLeaveTheDisk) {
  make();
  append({random_bytes(50 * 63 * kPageSize, 1)});
  EXPECT_GE(bytes_on_disk(), 50 * kSegmentSize);
  for (std::uint64_t id = 1; id < 50; ++id) ASSERT_TRUE(store_->remove(SegmentId{id}));
  EXPECT_LE(bytes_on_disk(), 8 * kSegmentSize);
}

TEST_F(SegmentStoreSpace, SparesOfTheFormerLifeAreRemoved) {
  make();
  ASSERT_TRUE(store_->reserve(10 * kSegmentSize));
  ASSERT_FALSE(files().empty());
  reopen();
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(store_->counters().files_bytes, 0u);
}

TEST_F(SegmentStoreSpace, FullDiskIsNoSpaceAndLeavesNoPieces) {
  make();
  disk_.faults.disk_is_full = true;
  EXPECT_EQ(store_->reserve(kPageSize).error().code, Code::kNoSpace);
  EXPECT_TRUE(files().empty());
  const Bytes run = as_bytes("x");
  EXPECT_EQ(store_->append(Stream::kCleaner, {&run, 1}).error().code, Code::kNoSpace);
  EXPECT_EQ(store_->append(Stream::kUser, {&run, 1}).error().code, Code::kIo);
  disk_.faults.disk_is_full = false;
  EXPECT_TRUE(store_->reserve(kPageSize));
}

TEST_F(SegmentStoreSpace, OldBatchesOfAReusedFileAreNotSeen) {
  make();
  ASSERT_TRUE(store_->reserve(3 * kSegmentSize));  // spares are wanted
  const std::string old_content = random_bytes(62 * kPageSize, 1);
  std::vector<Placed> all;
  for (int i = 0; i < 12; ++i) {
    all.push_back(append({old_content})[0]);
    ASSERT_TRUE(store_->sync());
    if (i < 2) continue;
    ASSERT_TRUE(store_->remove(all[static_cast<std::size_t>(i) - 2].segment));
  }
  EXPECT_LE(files().size(), 10u);  // files went round
  // A small batch at the start of such a file; behind it lie the old ones.
  const Placed small = append_one("new");
  ASSERT_GT(small.segment, all.back().segment);
  ASSERT_NE(peek(small.segment, 4 * kPageSize, kPageSize), std::string(kPageSize, '\0'));
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_EQ(known_[small.segment].length, 2 * kPageSize);
  EXPECT_EQ(*read(small), "new");
  Placed behind = small;
  behind.segment_offset = 4 * kPageSize;
  EXPECT_EQ(read(behind).error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
