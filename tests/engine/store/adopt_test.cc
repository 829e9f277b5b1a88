#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

using SegmentStoreAdopt = StoreTest;

TEST_F(SegmentStoreAdopt, OpenSegmentsAreSealedWhereTheirBatchesEnd) {
  make();
  const Placed at = append_one(random_bytes(10 * kPageSize, 1));
  const auto moved = append({random_bytes(3 * kPageSize, 2)}, Stream::kCleaner);
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_TRUE(known_[at.segment].sealed);
  EXPECT_EQ(known_[at.segment].length, 11 * kPageSize);
  EXPECT_EQ(known_[moved[0].segment].length, 4 * kPageSize);
  EXPECT_EQ(std::filesystem::file_size(path(at.segment)), 11 * kPageSize);
  EXPECT_TRUE(read(at));
  EXPECT_GT(append_one("a new one").segment, moved[0].segment);
}

TEST_F(SegmentStoreAdopt, TornLastBatchIsDropped) {
  make();
  const Placed whole = append_one(random_bytes(4 * kPageSize, 1));
  const Placed torn = append_one(random_bytes(4 * kPageSize, 2));
  flip(torn.segment, torn.segment_offset + 3 * kPageSize);
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_EQ(known_[whole.segment].length, 5 * kPageSize);
  EXPECT_TRUE(read(whole));
  EXPECT_EQ(read(torn).error().code, Code::kCorrupt);
}

TEST_F(SegmentStoreAdopt, TornChecksumPageEndsTheChain) {
  make();
  append_one(random_bytes(4 * kPageSize, 1));
  const Placed torn = append_one(random_bytes(4 * kPageSize, 2));
  append_one(random_bytes(4 * kPageSize, 3));  // whole, but never synced either
  poke(torn.segment, torn.segment_offset - kPageSize, std::string(512, '\0'));
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_EQ(known_[torn.segment].length, 5 * kPageSize);
}

TEST_F(SegmentStoreAdopt, DamageBelowWhatWasSyncedCutsNothingOff) {
  make();
  const Placed first = append_one(random_bytes(4 * kPageSize, 1));
  const Placed second = append_one(random_bytes(4 * kPageSize, 2));
  const Placed third = append_one(random_bytes(4 * kPageSize, 3));
  ASSERT_TRUE(store_->sync());
  const Placed last = append_one(random_bytes(4 * kPageSize, 4));  // its header tells of the sync
  flip(first.segment, first.segment_offset + 10);                  // a data page
  flip(second.segment, second.segment_offset - kPageSize + 200);   // a checksum page
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_EQ(known_[last.segment].length, 20 * kPageSize);
  EXPECT_EQ(read(first).error().code, Code::kCorrupt);
  EXPECT_EQ(read(second).error().code, Code::kCorrupt);
  EXPECT_TRUE(read(third));
  EXPECT_TRUE(read(last));
}

TEST_F(SegmentStoreAdopt, UnknownFilesAreRemoved) {
  make();
  const Placed at = append_one("kept");
  ASSERT_TRUE(store_->reserve(kPageSize));
  append({random_bytes(100 * kPageSize, 1)});
  const auto all = known();
  ASSERT_EQ(all.size(), 2u);
  reopen();
  ASSERT_TRUE(store_->adopt({all.data(), 1}));
  EXPECT_TRUE(std::filesystem::exists(path(at.segment)));
  EXPECT_FALSE(std::filesystem::exists(path(all[1].id)));
  EXPECT_EQ(store_->counters().segment_count, 1u);
  EXPECT_EQ(store_->counters().files_bytes, bytes_on_disk());
}

TEST_F(SegmentStoreAdopt, AnIdThatComesAgainFindsNoOldBatches) {
  make();
  append_one(random_bytes(20 * kPageSize, 1));
  ASSERT_TRUE(store_->reserve(4 * kSegmentSize));  // spares are wanted
  // The log lost the segment: neither it nor its file's content may come back under the same id.
  known_.clear();
  next_id_ = 1;
  reopen();
  ASSERT_TRUE(store_->reserve(4 * kSegmentSize));
  ASSERT_TRUE(store_->adopt({}));
  const Placed at = append_one("new");
  ASSERT_EQ(at.segment.value, 1u);
  EXPECT_EQ(peek(at.segment, 3 * kPageSize, kPageSize), std::string(kPageSize, '\0'));
}

TEST_F(SegmentStoreAdopt, ForeignFilesAreLeftAlone) {
  make();
  for (const char* name : {"lost+found", "0000000000abc123.sEg", "0000000000ABC123.seg", "spare-",
                           "spare-x", "1.seg", "0000000000000000.seg"}) {
    ASSERT_TRUE(make_real_disk()->open(options_.directory + "/" + name, OpenMode::kCreateNew));
  }
  reopen();
  ASSERT_TRUE(store_->adopt({}));
  EXPECT_EQ(files().size(), 7u);
}

TEST_F(SegmentStoreAdopt, SegmentWithoutAFileIsSealedEmpty) {
  make();
  known_[SegmentId{50}] = {SegmentId{50}, false, 0};
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_TRUE(known_[SegmentId{50}].sealed);
  EXPECT_EQ(known_[SegmentId{50}].length, 0u);
  EXPECT_TRUE(store_->remove(SegmentId{50}));
}

TEST_F(SegmentStoreAdopt, EmptyOpenSegmentIsSealedEmpty) {
  make();
  disk_.faults.fail_write = true;
  const Bytes run = as_bytes("x");
  ASSERT_FALSE(store_->append(Stream::kUser, {&run, 1}));
  disk_.faults.fail_write = false;
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_TRUE(known_[SegmentId{1}].sealed);
  EXPECT_EQ(known_[SegmentId{1}].length, 0u);
  EXPECT_EQ(std::filesystem::file_size(path(SegmentId{1})), 0u);
}

TEST_F(SegmentStoreAdopt, SealedFilesAreCutToTheirLength) {
  make();
  const Placed at = append({random_bytes(62 * kPageSize, 1)})[0];
  append_one("next");
  std::filesystem::resize_file(path(at.segment), kSegmentSize);  // a crash before the cut
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_EQ(std::filesystem::file_size(path(at.segment)), 63 * kPageSize);
  EXPECT_EQ(store_->counters().files_bytes, bytes_on_disk());
}

TEST_F(SegmentStoreAdopt, AMissingFileCutsNoCopiesOfOthers) {
  options_.ship = [](SegmentId, std::uint64_t, std::span<const Bytes>) {
    return [] { return Status{}; };
  };
  make();
  const Placed referenced = append_one("kept by another node");
  const Placed empty = append({"of no reference"}, Stream::kCleaner)[0];
  known_[referenced.segment].length = referenced.segment_offset + referenced.length;
  known_[empty.segment].length = 0;
  for (const Placed& at : {referenced, empty}) std::filesystem::remove(path(at.segment));
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_FALSE(known_[referenced.segment].sealed);
  EXPECT_TRUE(known_[empty.segment].sealed);
}

TEST_F(SegmentStoreAdopt, AdoptedBytesAreSyncedBeforeTheSealIs) {
  make();
  append_one("not synced by the former life");
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  disk_.faults.syncs = 0;
  ASSERT_TRUE(store_->sync());
  EXPECT_EQ(disk_.faults.syncs, 1);
}

}  // namespace
}  // namespace kvsyncfs
