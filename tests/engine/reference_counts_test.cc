#include "engine/reference_counts.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

#include "engine/live_inode.h"

namespace kvsyncfs {
namespace {

std::size_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Few inodes, so that they meet again and again; counts on both sides of what a slot holds.
struct Step {
  bool adds;
  InodeId inode;
  std::uint64_t count;
};

rc::Gen<Step> steps() {
  return rc::gen::build<Step>(
      rc::gen::set(&Step::adds),
      rc::gen::set(
          &Step::inode,
          rc::gen::map(rc::gen::inRange(1, 60),
                       [](int n) { return InodeId{static_cast<std::uint64_t>(n) * 1024}; })),
      rc::gen::set(&Step::count, rc::gen::element<std::uint64_t>(0, 1, 2, 3, 65'533, 65'534, 65'535,
                                                                 65'536, 1ull << 40)));
}

RC_GTEST_PROP(ReferenceCounts, CountsAsAMapDoes, ()) {
  const auto history = *rc::gen::scale(5, rc::gen::container<std::vector<Step>>(steps()));
  ReferenceCounts counts;
  std::map<InodeId, std::uint64_t> expected;
  for (const Step& step : history) {
    const bool had = expected.contains(step.inode);
    if (step.adds) {
      RC_ASSERT(counts.add(step.inode, step.count) == (!had && step.count > 0));
      if (had || step.count > 0) expected[step.inode] += step.count;
    } else {
      const bool last = had && expected[step.inode] <= step.count;
      RC_ASSERT(counts.take(step.inode, step.count) == last);
      if (last)
        expected.erase(step.inode);
      else if (had)
        expected[step.inode] -= step.count;
    }
    RC_ASSERT(counts.size() == expected.size());
    for (std::uint64_t n = 1; n < 60; ++n)
      RC_ASSERT(counts.contains(InodeId{n * 1024}) == expected.contains(InodeId{n * 1024}));
  }
}

TEST(LiveInodeTable, AnInodeThatTheKernelKnowsTakesEighteenBytesAndGivesThemBack) {
  constexpr std::uint64_t kInodes = 200'000;
  constexpr std::size_t kBytesMax = 18, kOfTheAllocator = 4096;
  BufferPool pool(kPageSize);
  LiveInodeTable table(pool);
  const std::size_t before = heap_bytes();
  for (std::uint64_t n = 1; n <= kInodes; ++n) {
    table.retain(InodeId{n * 1024}, 1);
    if (n % 10'000 != 0) continue;
    EXPECT_LE(heap_bytes() - before, n * kBytesMax + kOfTheAllocator) << n << " inodes";
  }
  EXPECT_EQ(table.retained_count(), kInodes);
  for (std::uint64_t n = 1; n <= kInodes; ++n) EXPECT_TRUE(table.release(InodeId{n * 1024}, 1));
  EXPECT_EQ(table.retained_count(), 0u);
  EXPECT_LE(heap_bytes(), before + kInodes);
}

}  // namespace
}  // namespace kvsyncfs
