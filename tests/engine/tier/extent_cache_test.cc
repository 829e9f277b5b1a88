#include "engine/tier/extent_cache.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

constexpr InodeId kFile{7};

TEST(ExtentCache, LoadsAWindowOnceUntilItsExtentsChange) {
  ExtentCache cache(1000);
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

TEST(ExtentCache, ALoadThatAChangeOvertookIsNotKept) {
  ExtentCache cache(1000);
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
  ExtentCache cache(1000);
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
  ExtentCache cache(16 * 10);
  int loads = 0;
  const auto load = [&](std::uint64_t, std::uint64_t) -> Result<std::vector<Extent>> {
    ++loads;
    return std::vector<Extent>(8);
  };
  EXPECT_TRUE(cache.window(kFile, 0, load));
  EXPECT_TRUE(cache.window(kFile, ExtentCache::kWindowSize, load));
  EXPECT_TRUE(
      cache.window(kFile, 0, load));  // the shard holds about ten extents, so the first one went
  EXPECT_EQ(loads, 3);
}

TEST(ExtentCache, AnErrorOfTheLoaderIsPassedUpAndNotKept) {
  ExtentCache cache(100);
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
