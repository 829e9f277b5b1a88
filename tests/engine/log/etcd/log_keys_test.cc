#include "engine/log/etcd/log_keys.h"

#include <gtest/gtest.h>

#include <string>

namespace kvsyncfs::etcd {
namespace {

TEST(LogKeys, NamesArePinned) {
  const LogKeys keys("vol", 12);
  EXPECT_EQ(keys.generation(), "/kvsyncfs/vol/generation");
  EXPECT_EQ(keys.life("n1"), "/kvsyncfs/vol/life/n1");
  EXPECT_EQ(keys.session("n1", 255), "/kvsyncfs/vol/session/n1/00000000000000ff");
  EXPECT_EQ(keys.count(), "/kvsyncfs/vol/log/12/count");
  EXPECT_EQ(keys.trim(), "/kvsyncfs/vol/log/12/trim");
  EXPECT_EQ(keys.batch({1, "n1", 2, 3}),
            "/kvsyncfs/vol/log/12/e/0000000000000001/n1/0000000000000002/0000000000000003");
}

TEST(LogKeys, TheKeyOfABatchTellsItsNameAndNoOtherKeyDoes) {
  const LogKeys keys("vol", 1);
  const BatchName name{~std::uint64_t{0}, "a.b_c-D", 5, 1u << 20};
  const std::string key = keys.batch(name);
  EXPECT_EQ(keys.parse_batch(key), name);
  EXPECT_EQ(LogKeys("vol", 2).parse_batch(key), std::nullopt);
  EXPECT_EQ(keys.parse_batch(keys.count()), std::nullopt);
  for (std::size_t i = 0; i < key.size(); ++i) {
    EXPECT_EQ(keys.parse_batch(key.substr(0, i)), std::nullopt);
    std::string changed = key;
    changed[i] = '+';
    EXPECT_EQ(keys.parse_batch(changed), std::nullopt) << changed;
  }
}

TEST(LogKeys, BatchesStandInTheOrderOfTheirBases) {
  const LogKeys keys("vol", 1);
  EXPECT_LT(keys.batch({9, "z", ~std::uint64_t{0}, 7}), keys.batches_from(10));
  EXPECT_LT(keys.batches_from(10), keys.batch({10, "-", 0, 0}));
  EXPECT_LT(keys.batch({10, "z", 0, 1}), keys.batch({256, "-", 0, 0}));
}

TEST(LogKeys, NamesOfVolumesAndNodesCannotReachIntoOtherKeys) {
  EXPECT_TRUE(is_name("node-1.rack_2"));
  for (const std::string& bad : {std::string(), std::string("a/b"), std::string("a b"),
                                 std::string("a\0b", 3), std::string(65, 'a')})
    EXPECT_FALSE(is_name(bad)) << bad;
}

TEST(LogKeys, ATrimRecordComesBackAndNothingElseIsOne) {
  const TrimRecord record{12, {345}};
  EXPECT_EQ(parse_trim(to_text(record)), record);
  for (const char* bad :
       {"", "12", "12 ", " 12", "12 34x", "-1 5", "1 2 3", "99999999999999999999 1"})
    EXPECT_EQ(parse_trim(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace kvsyncfs::etcd
