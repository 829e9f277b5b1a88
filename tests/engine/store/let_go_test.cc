// Segments that a node may not append to any more.
#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

using SegmentStoreLetGo = StoreTest;

TEST_F(SegmentStoreLetGo, SegmentsThatAreLetGoGetNoMoreBytes) {
  make();
  const Placed before = append_one("before");
  EXPECT_EQ(store_->let_go(), std::vector<SegmentId>{before.segment});
  EXPECT_TRUE(store_->let_go().empty());
  const Placed after = append_one("after");
  EXPECT_NE(after.segment, before.segment);
  EXPECT_FALSE(known_[before.segment].sealed) << "its caller seals it";
  EXPECT_EQ(read(before).value(), "before");
  const auto end = store_->batch_end(before.segment, before.segment_offset + before.length);
  ASSERT_TRUE(end);
  ASSERT_TRUE(store_->seal_replica(before.segment, *end));
  EXPECT_EQ(store_->file(before.segment)->file_bytes, *end);
  EXPECT_EQ(read(before).value(), "before");
}

}  // namespace
}  // namespace kvsyncfs
