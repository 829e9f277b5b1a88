#include "engine/tier/extent_cache.h"

#include <gtest/gtest.h>
#include <malloc.h>

namespace kvsyncfs {
namespace {

constexpr InodeId kFile{7};

TEST(ExtentCache, LoadsAWindowOnceUntilItsExtentsChange) {
  ExtentCache cache(1 << 20);
  int loads = 0;
  const auto load = [&](std::uint64_t, std::uint64_t) -> Result<std::vector<Extent>> {
    ++loads;
    return std::vector<Extent>{{0, 10, SegmentId{3}, 4096}};
  };
  EXPECT_EQ((*cache.window(kFile, 5, load))->size(), 1u);
  EXPECT_TRUE(cache.window(kFile, ExtentCache::kWindowSize - 1, load));
  EXPECT_EQ(loads, 1);
  cache.forget(kFile, 0, 1);
  EXPECT_TRUE(cache.window(kFile, 5, load));
  EXPECT_EQ(loads, 2);
  cache.forget(InodeId{8}, 0, 1);
  cache.forget(kFile, ExtentCache::kWindowSize, 1);
  EXPECT_TRUE(cache.window(kFile, 5, load));
  EXPECT_EQ(loads, 2);
}

TEST(ExtentCache, AWindowHoldsNothingOfItsNeighbours) {
  constexpr std::uint64_t kSize = ExtentCache::kWindowSize;
  ExtentCache cache(1 << 20);
  const std::vector<Extent> all{{kSize - 10, 30, SegmentId{3}, 4096},
                                {2 * kSize - 5, kSize + 10, SegmentId{4}, 0}};
  const auto window = [&](std::uint64_t offset) {
    return **cache.window(kFile, offset,
                          [&](auto begin, auto length) -> Result<std::vector<Extent>> {
                            std::vector<Extent> touching;
                            for (const Extent& e : all)
                              if (e.file_offset < begin + length && e.file_end() > begin)
                                touching.push_back(e);
                            return touching;
                          });
  };
  EXPECT_EQ(window(0), (std::vector<Extent>{{kSize - 10, 10, SegmentId{3}, 4096}}));
  EXPECT_EQ(window(kSize), (std::vector<Extent>{{kSize, 20, SegmentId{3}, 4106},
                                                {2 * kSize - 5, 5, SegmentId{4}, 0}}));
  EXPECT_EQ(window(2 * kSize), (std::vector<Extent>{{2 * kSize, kSize, SegmentId{4}, 5}}));
  EXPECT_EQ(window(3 * kSize), (std::vector<Extent>{{3 * kSize, 5, SegmentId{4}, kSize + 5}}));
}

TEST(ExtentCache, ALoadThatAChangeOvertookIsNotKept) {
  ExtentCache cache(1 << 20);
  int loads = 0;
  const auto load = [&](std::uint64_t, std::uint64_t) -> Result<std::vector<Extent>> {
    if (++loads == 1)
      cache.forget(kFile, 0, 1);  // as if a write were applied between load and insert
    return std::vector<Extent>{};
  };
  EXPECT_TRUE(cache.window(kFile, 0, load));
  EXPECT_TRUE(cache.window(kFile, 0, load));
  EXPECT_EQ(loads, 2);
}

TEST(ExtentCache, ForgettingAWholeFileForgetsEveryWindow) {
  ExtentCache cache(1 << 20);
  int loads = 0;
  const auto load = [&](std::uint64_t, std::uint64_t) -> Result<std::vector<Extent>> {
    ++loads;
    return std::vector<Extent>{};
  };
  for (std::uint64_t w = 0; w < 5; ++w)
    EXPECT_TRUE(cache.window(kFile, w * ExtentCache::kWindowSize, load));
  cache.forget(kFile, 0, kFileSizeMax);
  for (std::uint64_t w = 0; w < 5; ++w)
    EXPECT_TRUE(cache.window(kFile, w * ExtentCache::kWindowSize, load));
  EXPECT_EQ(loads, 10);
}

TEST(ExtentCache, StaysWithinItsBound) {
  ExtentCache cache(16 * 16 * sizeof(Extent));
  int loads = 0;
  const auto load = [&](std::uint64_t offset, std::uint64_t) -> Result<std::vector<Extent>> {
    ++loads;
    return std::vector<Extent>(8, {offset, 1, SegmentId{3}, 0});
  };
  EXPECT_TRUE(cache.window(kFile, 0, load));
  EXPECT_TRUE(cache.window(kFile, ExtentCache::kWindowSize, load));
  EXPECT_TRUE(cache.window(kFile, 0,
                           load));  // the shard holds about sixteen extents, so the first one went
  EXPECT_EQ(loads, 3);
}

TEST(ExtentCache, ManyFilesOfOneExtentStayWithinItsBytes) {
  constexpr std::size_t kBytes = 1 << 20;
  const auto heap_bytes = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  ExtentCache cache(kBytes);
  const std::size_t before = heap_bytes();
  for (std::uint64_t n = 1; n <= 50'000; ++n)
    EXPECT_TRUE(cache.window(InodeId{n * 1024}, 0, [](auto, auto) -> Result<std::vector<Extent>> {
      return std::vector<Extent>(1, {0, 4096, SegmentId{3}, 0});
    }));
  EXPECT_LE(heap_bytes() - before, kBytes);
}

TEST(ExtentCache, AnErrorOfTheLoaderIsPassedUpAndNotKept) {
  ExtentCache cache(1 << 20);
  EXPECT_EQ(
      cache.window(kFile, 0, [](auto, auto) -> Result<std::vector<Extent>> { return Code::kIo; })
          .error()
          .code,
      Code::kIo);
  EXPECT_TRUE(cache.window(
      kFile, 0, [](auto, auto) -> Result<std::vector<Extent>> { return std::vector<Extent>{}; }));
}

}  // namespace
}  // namespace kvsyncfs
