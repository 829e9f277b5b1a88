// Tables of locks: golden bytes and bad input.
#include "engine/format/lock_table.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

LockTable sample() {
  LockTable table;
  table.held.push_back({{{1}, 2}, LockType::kExclusive, 3, 4, 5});
  table.held.push_back({{{1}, 2}, LockType::kShared, 6, 7, 5});
  table.waits.push_back({8, {{{9}, 10}, LockType::kShared, 0, kLockEndMax, 11}});
  return table;
}

std::string golden() {
  const auto u64 = [](int v) {
    return std::string(1, static_cast<char>(v)) + std::string(7, '\0');
  };
  const auto u32 = [](int v) {
    return std::string(1, static_cast<char>(v)) + std::string(3, '\0');
  };
  return std::string(1, '\1') + u32(2) +                      // version, held
         u64(1) + u64(2) + "\2" + u64(3) + u64(4) + u32(5) +  //
         u64(1) + u64(2) + "\1" + u64(6) + u64(7) + u32(5) +  //
         u32(1) + u64(8) +                                    // waits, number
         u64(9) + u64(10) + "\1" + u64(0) + std::string(7, '\xff') + "\x7f" + u32(11);
}

TEST(LockTableFormat, GoldenBytes) {
  EXPECT_EQ(encode(sample()), golden());
  EXPECT_EQ(decode_lock_table(golden()).value(), sample());
}

TEST(LockTableFormat, CutShortTooLongOrEmptyIsCorrupt) {
  for (std::size_t size = 0; size < golden().size(); ++size)
    EXPECT_FALSE(decode_lock_table(golden().substr(0, size))) << size;
  EXPECT_FALSE(decode_lock_table(golden() + "x"));
  EXPECT_FALSE(decode_lock_table(encode(LockTable{})));
}

TEST(LockTableFormat, OutOfOrderOrOutOfRangeIsCorrupt) {
  const auto bad = [](auto change) {
    LockTable table = sample();
    table.waits.push_back(table.waits[0]);
    table.waits[1].id = 9;
    EXPECT_TRUE(decode_lock_table(encode(table)));
    change(table);
    EXPECT_FALSE(decode_lock_table(encode(table)));
  };
  bad([](LockTable& t) { std::swap(t.held[0], t.held[1]); });
  bad([](LockTable& t) { t.held[1].start = 4; });
  bad([](LockTable& t) { t.held[1].end = 5; });
  bad([](LockTable& t) { t.held[1].end = kLockEndMax + 1; });
  bad([](LockTable& t) { t.held[1].type = LockType{3}; });
  bad([](LockTable& t) { t.waits[1].id = 8; });
}

}  // namespace
}  // namespace kvsyncfs
