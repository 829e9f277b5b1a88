#include "engine/env/store_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

TEST(StoreLock, IsOnePersonsUntilItIsGone) {
  TempFolder folder;
  {
    const auto first = StoreLock::take(folder.path());
    ASSERT_TRUE(first);
    for (const auto mode : {StoreLock::Mode::kChange, StoreLock::Mode::kLook})
      EXPECT_EQ(StoreLock::take(folder.path(), mode).error().code, Code::kBusy);
  }
  EXPECT_TRUE(StoreLock::take(folder.path()));
}

TEST(StoreLock, RefusalNamesTheHolder) {
  TempFolder folder;
  const auto first = StoreLock::take(folder.path());
  const auto second = StoreLock::take(folder.path());
  ASSERT_FALSE(second);
  const std::string me = "process " + std::to_string(::getpid());
  EXPECT_NE(second.error().detail.find(me), std::string::npos) << second.error().detail;
}

TEST(StoreLock, LookingMakesNoFile) {
  TempFolder folder;
  EXPECT_EQ(StoreLock::take(folder.path(), StoreLock::Mode::kLook).error().code, Code::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace kvsyncfs
