#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

using SegmentStoreAppend = StoreTest;

TEST_F(SegmentStoreAppend, EverySizeComesBack) {
  make();
  for (const std::size_t size :
       {1u, 100u, 4095u, 4096u, 4097u, 8192u, 12345u, 100'000u, 262'144u, 1'000'001u}) {
    const std::vector<std::string> runs{random_bytes(size, size)};
    expect_content(runs, append(runs));
  }
}

TEST_F(SegmentStoreAppend, AlignedRunsComeBack) {
  make();
  const std::string content = random_bytes(40 * kPageSize, 1);
  const AlignedBuffer buffer = aligned_bytes(content);
  const Bytes run = buffer.bytes();
  const auto placed = store_->append(Stream::kUser, {&run, 1});
  ASSERT_TRUE(placed);
  expect_content({content}, *placed);
}

TEST_F(SegmentStoreAppend, RunsArePackedBackToBack) {
  make();
  const std::vector<std::string> runs{"abc", "", "defgh", random_bytes(5000, 2), "x"};
  const auto placed = append(runs);
  ASSERT_EQ(placed.size(), 4u);  // the empty one is nowhere
  EXPECT_EQ(placed[0].segment_offset, kPageSize);
  EXPECT_EQ(placed[1].segment_offset, kPageSize + 3);
  EXPECT_EQ(placed[2].segment_offset, kPageSize + 8);
  EXPECT_EQ(placed[3].segment_offset, kPageSize + 5008);
  expect_content(runs, placed);
}

TEST_F(SegmentStoreAppend, AFlushStartsOnAFreshPage) {
  make();
  const Placed first = append_one("first");
  const Placed second = append_one("second");
  EXPECT_EQ(second.segment_offset % kPageSize, 0u);
  EXPECT_GE(second.segment_offset, first.segment_offset + 2 * kPageSize);  // page and checksum page
}

TEST_F(SegmentStoreAppend, NothingToAppendWritesNothing) {
  make();
  EXPECT_TRUE(append({}).empty());
  EXPECT_TRUE(append({"", ""}).empty());
  EXPECT_EQ(disk_.faults.writes, 0);
}

TEST_F(SegmentStoreAppend, BatchesEndAfterAThousandPages) {
  options_.segment_size_bytes = 4096 * kPageSize;
  options_.size_bytes = 16 * options_.segment_size_bytes;
  make();
  const std::vector<std::string> runs{random_bytes(2500 * kPageSize, 3)};
  const auto placed = append(runs);
  ASSERT_EQ(placed.size(), 3u);
  EXPECT_EQ(placed[0].length, 1000 * kPageSize);
  EXPECT_EQ(placed[1].length, 1000 * kPageSize);
  EXPECT_EQ(placed[1].segment_offset, 1002 * kPageSize);
  EXPECT_EQ(placed[2].length, 500 * kPageSize);
  expect_content(runs, placed);
  EXPECT_EQ(disk_.faults.writes, 3);
}

TEST_F(SegmentStoreAppend, ScatteredPagesOfAWholeBatchAreOneWrite) {
  options_.segment_size_bytes = 2048 * kPageSize;
  options_.size_bytes = 16 * options_.segment_size_bytes;
  make();
  const std::string content = random_bytes(2000 * kPageSize, 4);
  const AlignedBuffer buffer = aligned_bytes(content);
  std::vector<Bytes> runs;
  for (std::size_t i = 0; i < 2000; i += 2)
    runs.push_back(buffer.bytes().subspan(i * kPageSize, kPageSize));
  const auto placed = store_->append(Stream::kUser, runs);
  ASSERT_TRUE(placed) << describe(placed.error());
  ASSERT_EQ(placed->size(), 1000u);
  EXPECT_EQ(disk_.faults.writes, 1);
  for (const Placed& p : *placed)
    EXPECT_EQ(*read(p), content.substr(p.run * 2 * kPageSize, kPageSize));
}

TEST_F(SegmentStoreAppend, BatchesDoNotStraddleTheSegmentsEnd) {
  make();
  append({random_bytes(60 * kPageSize, 5)});  // 61 of 64 pages
  const std::vector<std::string> runs{random_bytes(5 * kPageSize, 6)};
  const auto placed = append(runs);
  ASSERT_EQ(placed.size(), 2u);
  EXPECT_EQ(placed[0].length, 2 * kPageSize);
  EXPECT_EQ(placed[1].segment.value, placed[0].segment.value + 1);
  expect_content(runs, placed);
}

TEST_F(SegmentStoreAppend, ASegmentWithOnePageLeftIsSealedAndCut) {
  make();
  const Placed first = append({random_bytes(62 * kPageSize, 7)})[0];  // 63 of 64 pages
  append_one("next");
  EXPECT_TRUE(known_[first.segment].sealed);
  EXPECT_EQ(known_[first.segment].length, 63 * kPageSize);
  EXPECT_EQ(std::filesystem::file_size(path(first.segment)), 63 * kPageSize);
  EXPECT_TRUE(read(first));
}

TEST_F(SegmentStoreAppend, StreamsHaveSegmentsOfTheirOwn) {
  make();
  const auto user = append({"young"});
  const auto moved = append({"old"}, Stream::kCleaner);
  EXPECT_NE(user[0].segment, moved[0].segment);
  EXPECT_EQ(store_->counters().appended_bytes, 5u);
  EXPECT_EQ(store_->counters().moved_bytes, 3u);
  EXPECT_EQ(store_->counters().written_bytes, 4 * kPageSize);
}

TEST_F(SegmentStoreAppend, FileNameIsTheIdInHex) {
  next_id_ = 0xabc123;
  make();
  append_one("x");
  EXPECT_TRUE(std::filesystem::exists(options_.directory + "/0000000000abc123.seg"));
}

TEST_F(SegmentStoreAppend, AFailedWriteIsWrittenOver) {
  make();
  append_one("before");
  disk_.faults.fail_write = true;
  const Bytes run = as_bytes("lost");
  EXPECT_EQ(store_->append(Stream::kUser, {&run, 1}).error().code, Code::kIo);
  disk_.faults.fail_write = false;
  const Placed after = append_one("after");
  EXPECT_EQ(after.segment_offset, 3 * kPageSize);
  EXPECT_EQ(*read(after), "after");
}

TEST_F(SegmentStoreAppend, ARefusedIdLosesNoSpare) {
  make();
  fail_open_segment_ = true;
  const Bytes run = as_bytes("x");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(store_->append(Stream::kUser, {&run, 1}).error().code, Code::kShutdown);
  EXPECT_EQ(files().size(), 1u);
  fail_open_segment_ = false;
  EXPECT_EQ(*read(append_one("x")), "x");
}

TEST_F(SegmentStoreAppend, AFailedRenameLosesNoSpare) {
  make();
  disk_.faults.fail_rename = true;
  const Bytes run = as_bytes("x");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(store_->append(Stream::kUser, {&run, 1}).error().code, Code::kIo);
  EXPECT_EQ(files().size(), 1u);
  disk_.faults.fail_rename = false;
  EXPECT_EQ(*read(append_one("x")), "x");
}

TEST_F(SegmentStoreAppend, ReadOnlyRefusesChangesAndReads) {
  make();
  const Placed at = append_one("kept");
  options_.read_only = true;
  reopen();
  EXPECT_EQ(*read(at), "kept");
  const Bytes run = as_bytes("x");
  EXPECT_EQ(store_->append(Stream::kUser, {&run, 1}).error().code, Code::kReadOnly);
  EXPECT_EQ(store_->reserve(1).error().code, Code::kReadOnly);
}

TEST_F(SegmentStoreAppend, FormatRefusesAFolderThatIsThere) {
  make();
  EXPECT_EQ(SegmentStore::format(disk_, options_).error().code, Code::kExists);
}

TEST_F(SegmentStoreAppend, OddSegmentSizesAreRefused) {
  options_.segment_size_bytes = 100'000;
  EXPECT_EQ(SegmentStore::format(disk_, options_).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace kvsyncfs
