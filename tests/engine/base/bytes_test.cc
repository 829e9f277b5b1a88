#include "engine/base/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "engine/base/ids.h"

namespace kvsyncfs {
namespace {

TEST(AlignedBuffer, StartsAtAPageAndHoldsWhatWasAskedFor) {
  for (const std::size_t size : {std::size_t{1}, kPageSize - 1, kPageSize, 3 * kPageSize + 5}) {
    AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kPageSize, 0u);
    std::memset(buffer.data(), 0x5a, size);
  }
}

TEST(AlignedBuffer, OfNothingIsEmpty) {
  EXPECT_TRUE(AlignedBuffer(0).bytes().empty());
  EXPECT_TRUE(AlignedBuffer().bytes().empty());
}

TEST(Bytes, ViewsKeepNulBytes) {
  const std::string s("a\0b", 3);
  EXPECT_EQ(as_string(as_bytes(s)), s);
}

TEST(Ids, AreDistinctForEveryCommandOfEveryPosition) {
  EXPECT_LT(id_at(Position{7}, kCommandsPerTransactionMax - 1), id_at(Position{8}, 0));
  EXPECT_LT(id_at(Position{7}, 0), id_at(Position{7}, 1));
  EXPECT_GT(id_at(Position{1}, 0), kRootInode.value);
}

TEST(Ids, RoundUpKeepsWholeUnits) {
  EXPECT_EQ(round_up(0, 4096), 0u);
  EXPECT_EQ(round_up(1, 4096), 4096u);
  EXPECT_EQ(round_up(4096, 4096), 4096u);
}

}  // namespace
}  // namespace kvsyncfs
