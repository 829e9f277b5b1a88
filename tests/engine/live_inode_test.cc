#include "engine/live_inode.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

TEST(LiveUse, AnIdleInodeGoesWithTheScope) {
  BufferPool pool(kPageSize);
  LiveInodeTable table(pool);
  {
    const LiveUse outer(table, InodeId{7});
    { const LiveUse inner(table, InodeId{7}); }
    EXPECT_EQ(table.find(InodeId{7}), outer.pointer());
  }
  EXPECT_EQ(table.find(InodeId{7}), nullptr);
}

TEST(LiveUse, AnInodeWithDirtyBytesStays) {
  BufferPool pool(kPageSize);
  LiveInodeTable table(pool);
  {
    const LiveUse live(table, InodeId{7});
    live->dirty.write(0, as_bytes("bytes"));
  }
  const LiveInodePtr found = table.find(InodeId{7});
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->clean());
}

}  // namespace
}  // namespace kvsyncfs
