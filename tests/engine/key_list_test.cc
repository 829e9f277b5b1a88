#include "engine/key_list.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kvsyncfs {
namespace {

using Keys = std::vector<std::string>;

TEST(KeyList, HoldsTheFirstOnesInOrder) {
  KeyList list("k", 3, "k2");
  for (const char* key : {"k9", "k1", "k2", "k5", "other", "k3", "k7", "k4"}) list.add(key);
  EXPECT_EQ(list.take(), (Keys{"k3", "k4", "k5"}));
}

TEST(KeyList, FolderWithoutAKeyThatCountsIsNotWanted) {
  KeyList list("a/", 2, "a/d/5");
  EXPECT_FALSE(list.wants_below("b/")) << "not the prefix";
  EXPECT_TRUE(list.wants_below("a/"));
  EXPECT_FALSE(list.wants_below("a/c/")) << "all before";
  EXPECT_TRUE(list.wants_below("a/d/")) << "some after";
  EXPECT_TRUE(list.wants_below("a/e/"));
  list.add("a/f");
  list.add("a/g");
  EXPECT_TRUE(list.wants_below("a/e/"));
  EXPECT_FALSE(list.wants_below("a/h/")) << "all behind the last one";
}

TEST(KeyList, OfNoneWantsNothing) {
  KeyList list("", 0, "");
  EXPECT_FALSE(list.wants_below("a/"));
  list.add("a/b");
  EXPECT_EQ(list.take(), Keys{});
}

RC_GTEST_PROP(KeyList, IsTheSortedListCut, (Keys keys, std::string after)) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 8);
  KeyList list("", count, after);
  Keys expected;
  for (const std::string& key : keys) {
    list.add(key);
    if (after.empty() || key > after) expected.push_back(key);
  }
  std::sort(expected.begin(), expected.end());
  expected.resize(std::min(count, expected.size()));
  RC_ASSERT(list.take() == expected);
}

}  // namespace
}  // namespace kvsyncfs
