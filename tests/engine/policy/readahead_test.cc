#include "engine/policy/readahead.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

TEST(Readahead, ALoneMissBringsOnlyWhatItNeeds) {
  Readahead readahead;
  EXPECT_EQ(readahead.chunk_pages(SegmentId{1}, 100, 1, false), 1u);
  EXPECT_EQ(readahead.chunk_pages(SegmentId{1}, 500, 3, false), 3u);
}

TEST(Readahead, AnArenaWithRoomTakesNeighboursOfAFirstMiss) {
  Readahead readahead;
  EXPECT_EQ(readahead.chunk_pages(SegmentId{1}, 100, 1, true), Readahead::kAroundPages);
  EXPECT_EQ(readahead.chunk_pages(SegmentId{1}, 500, 30, true), 30u);
  EXPECT_EQ(readahead.chunk_pages(SegmentId{1}, 900, 1, false), 1u);
}

TEST(Readahead, AStreamDoublesItsChunkUpToTheLimit) {
  Readahead readahead;
  std::uint64_t page = 1;
  std::uint32_t chunk = 0;
  for (int i = 0; i < 12; ++i) page += chunk = readahead.chunk_pages(SegmentId{1}, page, 1, false);
  EXPECT_EQ(chunk, Readahead::kChunkPagesMax);
}

TEST(Readahead, StreamsOfDifferentSegmentsDoNotMix) {
  Readahead readahead;
  readahead.chunk_pages(SegmentId{1}, 1, 1, false);
  EXPECT_EQ(readahead.chunk_pages(SegmentId{2}, 2, 1, false), 1u);
  EXPECT_EQ(readahead.chunk_pages(SegmentId{1}, 2, 1, false), 2u);
}

/// Pages that so many random misses bring.
std::uint64_t miss_at_random(Readahead& readahead, int count, bool arena_has_room) {
  std::uint64_t page = 12345, total = 0;
  for (int i = 0; i < count; ++i) {
    page = page * 6364136223846793005ull + 1442695040888963407ull;
    total += readahead.chunk_pages(SegmentId{1}, (page >> 20) % 1000000, 1, arena_has_room);
  }
  return total;
}

TEST(Readahead, RandomMissesStaySmall) {
  Readahead readahead;
  EXPECT_LT(miss_at_random(readahead, 1000, false), 1100u);
}

TEST(Readahead, RandomMissesLoseTheirNeighboursAlsoWhereThereIsRoom) {
  Readahead readahead;
  EXPECT_LT(miss_at_random(readahead, 1000, true), 1400u);
  EXPECT_EQ(miss_at_random(readahead, 1, true), 1u);
}

TEST(Readahead, AStreamAfterRandomMissesBringsNeighboursBack) {
  Readahead readahead;
  miss_at_random(readahead, 1000, true);
  readahead.chunk_pages(SegmentId{2}, 1, 1, true);
  readahead.chunk_pages(SegmentId{2}, 2, 1, true);
  EXPECT_EQ(readahead.chunk_pages(SegmentId{3}, 500, 1, true), Readahead::kAroundPages);
}

}  // namespace
}  // namespace kvsyncfs
