#include "engine/tier/page_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace kvsyncfs {
namespace {

PageKey key(std::uint64_t segment, std::uint64_t page) { return {SegmentId{segment}, page}; }

/// A page whose every word tells its key.
std::vector<std::byte> content_of(PageKey k) {
  std::vector<std::byte> page(kPageSize);
  for (std::size_t i = 0; i < kPageSize; i += 8) {
    const std::uint64_t word = k.segment.value * 1'000'003 + k.page * 4099 + i;
    std::memcpy(page.data() + i, &word, 8);
  }
  return page;
}

bool holds(PageCache& cache, PageKey k) {
  std::vector<std::byte> out(kPageSize);
  if (!cache.read(k, 0, out)) return false;
  EXPECT_EQ(out, content_of(k)) << k.segment.value << " " << k.page;
  return true;
}

TEST(PageCache, MissesWhatWasNotPutIn) {
  PageCache cache(1 << 20);
  EXPECT_FALSE(holds(cache, key(1, 1)));
  EXPECT_EQ(cache.used_bytes(), 0u);
}

TEST(PageCache, GivesAnyPartOfAPage) {
  PageCache cache(1 << 20);
  const auto page = content_of(key(1, 2));
  cache.insert(key(1, 2), page);
  EXPECT_TRUE(holds(cache, key(1, 2)));
  std::vector<std::byte> out(100);
  ASSERT_TRUE(cache.read(key(1, 2), 3996, out));
  EXPECT_EQ(std::memcmp(out.data(), page.data() + 3996, 100), 0);
  EXPECT_TRUE(cache.read(key(1, 2), 4096, {}));
}

TEST(PageCache, KeysAreToldApart) {
  PageCache cache(4 << 20);
  for (std::uint64_t s = 1; s <= 10; ++s) {
    for (std::uint64_t p = 0; p < 10; ++p) cache.insert(key(s, p), content_of(key(s, p)));
  }
  for (std::uint64_t s = 1; s <= 10; ++s) {
    for (std::uint64_t p = 0; p < 10; ++p) EXPECT_TRUE(holds(cache, key(s, p)));
  }
  EXPECT_FALSE(holds(cache, key(11, 0)));
  EXPECT_FALSE(holds(cache, key(1, 10)));
}

TEST(PageCache, APageThatIsHereStays) {
  PageCache cache(1 << 20);
  cache.insert(key(1, 1), content_of(key(1, 1)));
  cache.insert(key(1, 1), content_of(key(2, 2)));
  EXPECT_TRUE(holds(cache, key(1, 1)));
  EXPECT_EQ(cache.used_bytes(), kPageSize);
}

TEST(PageCache, SizeIsNeverExceeded) {
  PageCache cache((1 << 20) + 100);
  EXPECT_EQ(cache.size_bytes(), std::uint64_t{1} << 20);
  for (std::uint64_t p = 0; p < 10'000; ++p) cache.insert(key(1, p), content_of(key(1, p)));
  EXPECT_EQ(cache.used_bytes(), cache.size_bytes());
  std::uint64_t held = 0;
  for (std::uint64_t p = 0; p < 10'000; ++p) held += holds(cache, key(1, p)) ? 1 : 0;
  EXPECT_EQ(held, cache.size_bytes() / kPageSize);
}

TEST(PageCache, NoSizeIsNoCache) {
  PageCache cache(kPageSize - 1);
  cache.insert(key(1, 1), content_of(key(1, 1)));
  EXPECT_FALSE(holds(cache, key(1, 1)));
  EXPECT_EQ(cache.size_bytes(), 0u);
  EXPECT_EQ(cache.used_bytes(), 0u);
}

TEST(PageCache, OnePageIsEnough) {
  PageCache cache(kPageSize);
  for (std::uint64_t p = 0; p < 100; ++p) {
    cache.insert(key(1, p), content_of(key(1, p)));
    EXPECT_TRUE(holds(cache, key(1, p)));
    EXPECT_FALSE(p > 0 && holds(cache, key(1, p - 1)));
  }
}

TEST(PageCache, PagesInUseOutliveAScan) {
  PageCache cache(4 << 20);
  for (std::uint64_t p = 0; p < 100; ++p) cache.insert(key(1, p), content_of(key(1, p)));
  std::uint64_t held = 0;
  for (std::uint64_t scanned = 0; scanned < 20'000; ++scanned) {
    cache.insert(key(2, scanned), content_of(key(2, scanned)));
    if (scanned % 100 == 0) {
      held = 0;
      for (std::uint64_t p = 0; p < 100; ++p) held += holds(cache, key(1, p)) ? 1 : 0;
    }
  }
  EXPECT_EQ(held, 100u);
}

TEST(PageCache, AgreesWithAModelOverRandomUse) {
  PageCache cache(64 * kPageSize);  // one shard, always full: many evictions move index slots
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const PageKey k = key(1 + random() % 3, random() % 60);
    if (random() % 2 == 0) {
      cache.insert(k, content_of(k));
      ASSERT_TRUE(holds(cache, k));  // what was just put in is found
    } else {
      holds(cache, k);  // if it is here, it is right
    }
  }
  std::uint64_t held = 0;
  for (std::uint64_t s = 1; s <= 3; ++s) {
    for (std::uint64_t p = 0; p < 60; ++p) held += holds(cache, key(s, p)) ? 1 : 0;
  }
  EXPECT_EQ(held, 64u);
}

TEST(PageCache, ThreadsSeeWholePages) {
  PageCache cache(256 * kPageSize);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 20'000; ++i) {
        const PageKey k = key(1, random() % 1000);
        if (!holds(cache, k)) cache.insert(k, content_of(k));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cache.used_bytes(), cache.size_bytes());
}

}  // namespace
}  // namespace kvsyncfs
