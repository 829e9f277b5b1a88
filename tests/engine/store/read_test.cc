#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

using SegmentStoreRead = StoreTest;

TEST_F(SegmentStoreRead, AnyRangeOfABatchComesBack) {
  make();
  const std::string content = random_bytes(20 * kPageSize, 1);
  const Placed at = append_one(content);
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const std::size_t offset = random() % content.size();
    const std::size_t size = random() % (content.size() - offset);
    std::string out(size, '?');
    ASSERT_TRUE(store_->read(at.segment, at.segment_offset + offset,
                             {reinterpret_cast<std::byte*>(out.data()), size}));
    ASSERT_EQ(out, content.substr(offset, size)) << offset << " " << size;
  }
}

TEST_F(SegmentStoreRead, AlignedPagesComeBackInPlace) {
  make();
  const std::string content = random_bytes(20 * kPageSize, 1);
  const Placed at = append_one(content);
  AlignedBuffer out(3 * kPageSize);
  ASSERT_TRUE(store_->read(at.segment, at.segment_offset + 5 * kPageSize, out.bytes()));
  EXPECT_EQ(as_string(out.bytes()), content.substr(5 * kPageSize, 3 * kPageSize));
}

TEST_F(SegmentStoreRead, ReadsSurviveReopening) {
  make();
  std::vector<std::string> runs;
  std::vector<Placed> placed;
  for (std::size_t i = 0; i < 300; ++i) {  // small and large batches over several segments
    runs.push_back(random_bytes(1 + i * 61 % 30'000, i));
    for (Placed p : append({runs.back()})) {
      p.run = i;
      placed.push_back(p);
    }
  }
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  expect_content(runs, placed);
  EXPECT_EQ(store_->counters().corrupt_pages, 0u);
}

TEST_F(SegmentStoreRead, PagesAreLoadedOverTheEndsOfBatches) {
  make();
  const std::string one = random_bytes(3 * kPageSize, 1), two = random_bytes(kPageSize, 2),
                    three = random_bytes(2 * kPageSize, 3);
  append_one(one);    // pages 1 to 3
  append_one(two);    // page 5
  append_one(three);  // pages 7 and 8
  AlignedBuffer buffer(64 * kPageSize);
  const auto load = [&](std::uint64_t page, std::size_t count) {
    return store_->load_pages({1}, page, buffer.bytes().first(count * kPageSize));
  };
  const auto page = [&](std::size_t i) {
    return std::string(as_string(buffer.bytes().subspan(i * kPageSize, kPageSize)));
  };
  ASSERT_EQ(*load(2, 64), 7u);
  EXPECT_EQ(page(0), one.substr(kPageSize, kPageSize));
  EXPECT_EQ(page(3), two);
  EXPECT_EQ(page(6), three.substr(kPageSize));
  EXPECT_EQ(*load(2, 2), 2u);
  EXPECT_EQ(*load(2, 3), 2u) << "a checksum page is not the last";
  EXPECT_EQ(*load(2, 4), 4u);
  EXPECT_EQ(*load(8, 64), 1u);
}

TEST_F(SegmentStoreRead, ABadPageCostsOnlyWhatFollows) {
  make();
  append_one(random_bytes(3 * kPageSize, 1));
  append_one(random_bytes(2 * kPageSize, 2));
  AlignedBuffer buffer(64 * kPageSize);
  flip({1}, 2 * kPageSize);
  EXPECT_EQ(*store_->load_pages({1}, 1, buffer.bytes()), 1u);
  EXPECT_EQ(store_->counters().corrupt_pages, 0u) << "nobody asked for it";
  EXPECT_EQ(store_->load_pages({1}, 2, buffer.bytes()).error().code, Code::kCorrupt);
  EXPECT_EQ(store_->counters().corrupt_pages, 1u);
  flip({1}, 4 * kPageSize);  // the checksum page between the two
  EXPECT_EQ(*store_->load_pages({1}, 3, buffer.bytes()), 1u);
}

TEST_F(SegmentStoreRead, OnlyDataPagesAreLoaded) {
  make();
  append_one(random_bytes(10 * kPageSize, 1));
  AlignedBuffer buffer(4 * kPageSize);
  for (const std::uint64_t page : {0u, 11u, 1u << 30})
    EXPECT_EQ(store_->load_pages({1}, page, buffer.bytes()).error().code, Code::kCorrupt) << page;
  EXPECT_EQ(store_->load_pages({99}, 1, buffer.bytes()).error().code, Code::kNotFound);
}

TEST_F(SegmentStoreRead, ARangeOverTheBatchesEndIsRefused) {
  make();
  const Placed at = append_one(random_bytes(3 * kPageSize, 1));
  append_one("next batch");
  AlignedBuffer out(5 * kPageSize);
  EXPECT_EQ(store_->read(at.segment, at.segment_offset, out.bytes()).error().code, Code::kCorrupt);
}

TEST_F(SegmentStoreRead, FlippedByteCostsItsPageOnly) {
  make();
  const std::string content = random_bytes(3 * kPageSize, 1);
  const Placed at = append_one(content);
  flip(at.segment, at.segment_offset + kPageSize + 17);
  Placed page = at;
  page.length = kPageSize;
  EXPECT_EQ(*read(page), content.substr(0, kPageSize));
  page.segment_offset += kPageSize;
  const auto bad = read(page);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kCorrupt);
  EXPECT_EQ(bad.error().detail, "segment 1 page 2: bad checksum");
  EXPECT_EQ(store_->counters().corrupt_pages, 1u);
  page.segment_offset += kPageSize;
  EXPECT_EQ(*read(page), content.substr(2 * kPageSize));
}

TEST_F(SegmentStoreRead, PaddingIsCheckedToo) {
  make();
  const Placed at = append_one("short");
  flip(at.segment, at.segment_offset + 4000);
  EXPECT_EQ(read(at).error().code, Code::kCorrupt);
}

TEST_F(SegmentStoreRead, SwappedPagesShow) {
  make();
  const Placed at = append_one(random_bytes(2 * kPageSize, 1));
  const std::string first = peek(at.segment, at.segment_offset, kPageSize);
  const std::string second = peek(at.segment, at.segment_offset + kPageSize, kPageSize);
  poke(at.segment, at.segment_offset, second);
  poke(at.segment, at.segment_offset + kPageSize, first);
  EXPECT_EQ(read(at).error().code, Code::kCorrupt);
  EXPECT_EQ(store_->counters().corrupt_pages, 2u);
}

TEST_F(SegmentStoreRead, EqualPagesInTheWrongPlaceShowAsWell) {
  // Two batches alike: a write that went to the other one's place, checksum page and all.
  make();
  const Placed a = append_one("same bytes");
  const Placed b = append_one("same bytes");
  const std::string batch = peek(a.segment, a.segment_offset - kPageSize, 2 * kPageSize);
  poke(b.segment, b.segment_offset - kPageSize, batch);
  reopen();
  EXPECT_EQ(read(b).error().code, Code::kCorrupt);
  EXPECT_EQ(*read(a), "same bytes");
}

TEST_F(SegmentStoreRead, DamagedChecksumPageCostsItsBatchOnly) {
  make();
  const Placed a = append_one(random_bytes(5 * kPageSize, 1));
  const Placed b = append_one(random_bytes(7 * kPageSize, 2));
  const Placed c = append_one(random_bytes(3 * kPageSize, 3));
  flip(b.segment, b.segment_offset - kPageSize + 100);
  reopen();
  EXPECT_TRUE(read(a));
  EXPECT_EQ(read(b).error().code, Code::kCorrupt);
  EXPECT_TRUE(read(c));
}

TEST_F(SegmentStoreRead, TruncatedFileIsCorrupt) {
  make();
  const Placed at = append_one(random_bytes(10 * kPageSize, 1));
  std::filesystem::resize_file(path(at.segment), 5 * kPageSize + 100);
  EXPECT_EQ(read(at).error().code, Code::kCorrupt);
  reopen();
  EXPECT_EQ(read(at).error().code, Code::kCorrupt);
  std::filesystem::resize_file(path(at.segment), 0);
  reopen();
  EXPECT_EQ(read(at).error().code, Code::kCorrupt);
}

TEST_F(SegmentStoreRead, LostFileIsNotFound) {
  make();
  const Placed at = append_one("x");
  std::filesystem::remove(path(at.segment));
  reopen();
  EXPECT_EQ(read(at).error().code, Code::kNotFound);
}

TEST_F(SegmentStoreRead, AnotherVolumesSegmentIsNotBelieved) {
  make();
  const Placed at = append_one("ours");
  options_.volume_tag ^= 1;
  reopen();
  EXPECT_EQ(read(at).error().code, Code::kCorrupt);
}

TEST_F(SegmentStoreRead, OpenFilesStayBounded) {
  options_.open_files_max = 4;
  make();
  std::vector<Placed> placed;
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < 40; ++i) {
    runs.push_back(random_bytes(63 * kPageSize, i));  // one segment each
    placed.push_back(append({runs.back()})[0]);
    placed.back().run = i;
  }
  EXPECT_LE(disk_.faults.open_files_max, 4 + 17);  // and those not yet synced
  ASSERT_TRUE(store_->sync());
  disk_.faults.open_files_max = 0;
  for (int round = 0; round < 3; ++round) expect_content(runs, placed);
  EXPECT_LE(disk_.faults.open_files_max, 4 + 2);  // the one being written, the one being opened
  EXPECT_GE(disk_.faults.open_files_max, 4);
}

TEST_F(SegmentStoreRead, ScrubNamesBadPages) {
  make();
  const Placed a = append_one(random_bytes(5 * kPageSize, 1));
  const Placed b = append_one(random_bytes(7 * kPageSize, 2));
  append_one(random_bytes(3 * kPageSize, 3));
  const SegmentId id = a.segment;
  std::uint64_t scanned = 0;
  const auto scrub = [&](Scrub what = Scrub::kPages) {
    return store_->scrub(id, what, [&](std::uint64_t bytes) { scanned += bytes; }).value();
  };
  using Pages = std::vector<PageRange>;
  EXPECT_EQ(scrub(), Pages{});
  EXPECT_EQ(scanned, 15 * kPageSize);
  flip(id, a.segment_offset + 1);
  flip(id, a.segment_offset + 3 * kPageSize);
  flip(id, a.segment_offset + 4 * kPageSize);
  EXPECT_EQ(scrub(), (Pages{{1, 1}, {4, 2}}));
  EXPECT_EQ(scrub(Scrub::kBatches), Pages{});
  flip(id, b.segment_offset - kPageSize + 50);  // a checksum page: all behind it cannot be verified
  EXPECT_EQ(scrub(), (Pages{{1, 1}, {4, 2}, {6, 8}}));
  EXPECT_EQ(scrub(Scrub::kBatches), (Pages{{6, 8}}));
  EXPECT_EQ(store_->scrub(SegmentId{77}, Scrub::kPages, [](auto) {}).error().code, Code::kNotFound);
}

TEST_F(SegmentStoreRead, ScrubMissesTheCutOffEnd) {
  make();
  const Placed at = append_one(random_bytes(10 * kPageSize, 1));
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  std::filesystem::resize_file(path(at.segment), 0);
  const auto bad = store_->scrub(at.segment, Scrub::kBatches, [](auto) {});
  EXPECT_EQ(*bad, (std::vector<PageRange>{{0, 11}}));
}

TEST_F(SegmentStoreRead, ReadOnlyAdoptionJudgesAndChangesNothing) {
  make();
  const Placed good = append_one(random_bytes(3 * kPageSize, 1));
  const Placed torn = append_one(random_bytes(2 * kPageSize, 2));
  ASSERT_TRUE(store_->sync());
  flip(torn.segment, torn.segment_offset);
  std::filesystem::copy_file(path(good.segment), path({900}));
  auto size_before = std::filesystem::file_size(path(good.segment));
  auto known_before = known();
  options_.read_only = true;
  reopen();
  ASSERT_TRUE(store_->adopt(known_before));
  EXPECT_EQ(store_->file(good.segment)->length, 4 * kPageSize) << "what was torn is no part of it";
  EXPECT_EQ(store_->scrub(good.segment, Scrub::kPages, [](auto) {})->size(), 0u);
  EXPECT_FALSE(store_->file({900})) << "nobody's";
  EXPECT_EQ(std::filesystem::file_size(path(good.segment)), size_before);
  EXPECT_TRUE(std::filesystem::exists(path({900})));
  EXPECT_EQ(known().front().sealed, false);
}

}  // namespace
}  // namespace kvsyncfs
