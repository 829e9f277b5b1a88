#include "engine/log_mark_file.h"

#include <gtest/gtest.h>

#include "tests/lib/memory_disk.h"

namespace kvsyncfs {
namespace {

LogMark mark(std::uint64_t index) { return {7, index, 100, "key-" + std::to_string(index)}; }

class LogMarkFile : public ::testing::Test {
 protected:
  LogMarkFile() { EXPECT_TRUE(disk.make_directory("/s") && disk.sync_directory("")); }
  MemoryDisk disk;
};

TEST_F(LogMarkFile, AStoreWithoutOneHasNone) {
  const auto loaded = load_log_mark(disk, "/s");
  ASSERT_TRUE(loaded) << describe(loaded.error());
  EXPECT_FALSE(*loaded);
}

TEST_F(LogMarkFile, WhatWasStoredSurvivesAPowerCut) {
  ASSERT_TRUE(store_log_mark(disk, "/s", mark(12345)));
  ASSERT_TRUE(store_log_mark(disk, "/s", mark(2)));
  disk.crash();
  const auto loaded = load_log_mark(disk, "/s");
  ASSERT_TRUE(loaded) << describe(loaded.error());
  EXPECT_EQ(*loaded, mark(2));
}

TEST_F(LogMarkFile, AFailureAnywhereLeavesTheEarlierOneOrTheNewOne) {
  ASSERT_TRUE(store_log_mark(disk, "/s", mark(1)));
  for (std::size_t fail_at = 0;; ++fail_at) {
    ASSERT_LT(fail_at, 20u) << "it never succeeds";
    std::size_t operation = 0;
    disk.set_hook([&](DiskRequest&) -> Status {
      return operation++ == fail_at ? Status(Code::kIo) : Status{};
    });
    const Status stored = store_log_mark(disk, "/s", mark(2));
    disk.set_hook({});
    disk.crash();
    const auto loaded = load_log_mark(disk, "/s");
    ASSERT_TRUE(loaded) << describe(loaded.error());
    if (stored) {
      EXPECT_EQ(*loaded, mark(2));
      return;
    }
    EXPECT_TRUE(*loaded == mark(1) || *loaded == mark(2)) << fail_at;
  }
}

TEST_F(LogMarkFile, ADamagedOneIsNotBelieved) {
  ASSERT_TRUE(store_log_mark(disk, "/s", mark(1)));
  const auto file = disk.open("/s/log-mark", OpenMode::kReadWrite, false);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write_at(20, as_bytes("x")));
  EXPECT_EQ(load_log_mark(disk, "/s").error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
