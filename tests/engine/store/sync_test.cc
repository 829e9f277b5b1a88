#include <thread>

#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

using SegmentStoreSync = StoreTest;

TEST_F(SegmentStoreSync, NothingAppendedMakesNoCall) {
  make();
  ASSERT_TRUE(store_->sync());
  append_one("x");
  ASSERT_TRUE(store_->sync());
  disk_.faults.syncs = 0;
  disk_.faults.directory_syncs = 0;
  ASSERT_TRUE(store_->sync());
  EXPECT_EQ(disk_.faults.syncs, 0);
  EXPECT_EQ(disk_.faults.directory_syncs, 0);
}

TEST_F(SegmentStoreSync, NewFilesSyncTheDirectoryOnce) {
  make();
  append_one("x");
  ASSERT_TRUE(store_->sync());
  EXPECT_EQ(disk_.faults.directory_syncs, 1);
  append_one("y");
  ASSERT_TRUE(store_->sync());
  EXPECT_EQ(disk_.faults.directory_syncs, 1);
  EXPECT_EQ(disk_.faults.syncs, 2);
}

TEST_F(SegmentStoreSync, SealedSegmentsAreSyncedAsWell) {
  make();
  append({random_bytes(200 * kPageSize, 1)});
  append({"moved"}, Stream::kCleaner);
  ASSERT_TRUE(store_->sync());
  EXPECT_EQ(disk_.faults.syncs, 5);  // four of the user's, one of the cleaner's
}

TEST_F(SegmentStoreSync, FailureIsFinal) {
  make();
  append_one("x");
  disk_.faults.fail_sync = true;
  EXPECT_EQ(store_->sync().error().code, Code::kIo);
  disk_.faults.fail_sync = false;
  EXPECT_EQ(store_->sync().error().code, Code::kIo);
  append_one("y");
  EXPECT_EQ(store_->sync().error().code, Code::kIo);
}

TEST_F(SegmentStoreSync, CallersShareTheWork) {
  make();
  constexpr int kThreads = 8, kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string content = random_bytes(100, static_cast<std::uint64_t>(t * 1000 + i));
        const Bytes run = as_bytes(content);
        EXPECT_TRUE(store_->append(Stream::kUser, {&run, 1}));
        EXPECT_TRUE(store_->sync());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LT(disk_.faults.syncs, kThreads * kRounds);
}

TEST_F(SegmentStoreSync, AllAtOnceKeepsEveryByte) {
  options_.open_files_max = 3;
  make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      std::vector<std::pair<std::string, Placed>> mine;
      const Stream stream = t == 0 ? Stream::kCleaner : Stream::kUser;
      for (int i = 0; i < 60; ++i) {
        const std::size_t size = 1 + random() % (8 * kPageSize);
        if (!store_->reserve(round_up(size, kPageSize))) continue;
        const std::string content = random_bytes(size, random());
        const Bytes run = as_bytes(content);
        const auto placed = store_->append(stream, {&run, 1});
        store_->unreserve(round_up(size, kPageSize));
        ASSERT_TRUE(placed);
        for (const Placed& p : *placed)
          mine.emplace_back(content.substr(p.run_offset, p.length), p);
        if (i % 16 == 0) {
          EXPECT_TRUE(store_->sync());
        }
        const auto& [expected, at] = mine[random() % mine.size()];
        EXPECT_EQ(*read(at), expected);
        store_->free_bytes();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store_->counters().corrupt_pages, 0u);
}

}  // namespace
}  // namespace kvsyncfs
