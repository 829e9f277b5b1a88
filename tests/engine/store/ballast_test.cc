#include "engine/store/ballast.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/lib/memory_disk.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kMiB = 1u << 20, kDisk = 16 * kMiB, kBallast = 4 * kMiB;

/// Takes so many files.
class CountedDisk final : public MemoryDisk {
 public:
  using MemoryDisk::MemoryDisk;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, bool direct) override {
    const bool is_there = exists(path).value();
    if (!is_there && inodes_ == 0) return Error(Code::kNoSpace, path);
    KVSYNCFS_ASSIGN(auto file, MemoryDisk::open(path, mode, direct));
    if (!is_there) --inodes_;
    return file;
  }
  Status remove(const std::string& path) override {
    KVSYNCFS_TRY(MemoryDisk::remove(path));
    ++inodes_;
    return {};
  }
  Result<DiskSpace> space(const std::string& path) override {
    KVSYNCFS_ASSIGN(DiskSpace space, MemoryDisk::space(path));
    space.available_inodes = inodes_;
    return space;
  }
  std::uint64_t take_inodes() { return std::exchange(inodes_, 0); }
  void give_inodes(std::uint64_t count) { inodes_ += count; }

 private:
  std::uint64_t inodes_ = 1000;
};

class BallastOfStore : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk_.make_directory("store")); }
  /// Another one's file that leaves so much of the disk.
  void fill_but(std::uint64_t left) {
    auto file = disk_.open("other", OpenMode::kCreateOrOpen, false);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->allocate((*file)->size().value() + available() - left));
  }
  std::uint64_t available() { return disk_.space("store")->available_bytes; }
  bool is_on_disk() { return disk_.exists("store/ballast").value(); }
  static Status write(Disk& disk, const std::string& path, std::uint64_t size) {
    KVSYNCFS_ASSIGN(auto file, disk.open(path, OpenMode::kCreateOrOpen));
    return file->write_at(0, as_bytes(std::string(size, 'x')));
  }

  CountedDisk disk_{kDisk};
  Ballast ballast_{disk_, "store", kBallast};
};

TEST_F(BallastOfStore, TakesItsSizeOfTheDisk) {
  ASSERT_TRUE(ballast_.make());
  EXPECT_TRUE(ballast_.is_there());
  EXPECT_EQ(available(), kDisk - kBallast);
}

TEST_F(BallastOfStore, GuardedWriteOnAFullDiskGivesItUpAndSucceeds) {
  ASSERT_TRUE(ballast_.make());
  fill_but(0);
  EXPECT_TRUE(write(ballast_.guarded(), "store/log", kMiB));
  EXPECT_FALSE(ballast_.is_there());
  EXPECT_FALSE(is_on_disk());
  EXPECT_EQ(disk_.contents("store/log"), std::string(kMiB, 'x'));
}

TEST_F(BallastOfStore, GuardedAllocationOnAFullDiskGivesItUpAndSucceeds) {
  ASSERT_TRUE(ballast_.make());
  fill_but(kMiB);
  auto file = ballast_.guarded().open("store/next", OpenMode::kCreateNew);
  ASSERT_TRUE(file);
  EXPECT_TRUE((*file)->allocate(2 * kMiB));
  EXPECT_FALSE(ballast_.is_there());
}

TEST_F(BallastOfStore, GuardedFileOnADiskWithoutInodesTakesASpareOneAndNoBytes) {
  ASSERT_TRUE(ballast_.make());
  const std::uint64_t others = disk_.take_inodes();
  EXPECT_EQ(disk_.open("store/of a user", OpenMode::kCreateNew, false).error().code,
            Code::kNoSpace);
  for (std::size_t i = 0; i < Ballast::kSpareFiles; ++i)
    ASSERT_TRUE(write(ballast_.guarded(), "store/log" + std::to_string(i), 1));
  EXPECT_FALSE(ballast_.is_there());
  EXPECT_TRUE(ballast_.has_bytes());
  EXPECT_EQ(ballast_.probe(1).error().code, Code::kNoSpace);

  disk_.give_inodes(Ballast::kSpareFiles);
  ASSERT_TRUE(ballast_.restore(0));
  EXPECT_FALSE(ballast_.has_inodes()) << "too few for others beside it";
  EXPECT_TRUE(ballast_.probe(1));
  disk_.give_inodes(others);
  ASSERT_TRUE(ballast_.restore(0));
  EXPECT_TRUE(ballast_.is_there());
}

TEST_F(BallastOfStore, NextLifeFindsTheSpareFilesThatAreLeft) {
  ASSERT_TRUE(ballast_.make());
  Ballast whole(disk_, "store", kBallast), less(disk_, "store", kBallast);
  ASSERT_TRUE(whole.open());
  EXPECT_TRUE(whole.is_there());
  disk_.take_inodes();
  ASSERT_TRUE(write(whole.guarded(), "store/log", 1));
  ASSERT_TRUE(less.open());
  EXPECT_TRUE(less.has_bytes());
  EXPECT_FALSE(less.has_inodes());
}

TEST_F(BallastOfStore, UserDataDoNotGetIt) {
  ASSERT_TRUE(ballast_.make());
  fill_but(0);
  EXPECT_EQ(write(disk_, "store/segment", kMiB).error().code, Code::kNoSpace);
  EXPECT_TRUE(ballast_.is_there());
}

TEST_F(BallastOfStore, WhatNeedsMoreThanItIsRefused) {
  ASSERT_TRUE(ballast_.make());
  fill_but(0);
  EXPECT_EQ(write(ballast_.guarded(), "store/log", kBallast + kMiB).error().code, Code::kNoSpace);
  EXPECT_FALSE(ballast_.is_there());
}

TEST_F(BallastOfStore, WhoFailedBeforeItWasGivenUpTriesAgain) {
  ASSERT_TRUE(ballast_.make());
  const std::uint64_t mark = ballast_.mark();
  EXPECT_TRUE(ballast_.make_room(mark));  // another one's
  EXPECT_TRUE(ballast_.make_room(mark));
  EXPECT_FALSE(ballast_.make_room(ballast_.mark()));
}

TEST_F(BallastOfStore, ComesBackWhenTheDiskHasRoomForMoreThanIt) {
  ASSERT_TRUE(ballast_.make());
  ASSERT_TRUE(ballast_.make_room(ballast_.mark()));
  fill_but(kBallast + kMiB - 1);
  EXPECT_TRUE(ballast_.restore(kMiB));
  EXPECT_FALSE(ballast_.is_there());
  ASSERT_TRUE(disk_.remove("other"));
  EXPECT_TRUE(ballast_.restore(kMiB));
  EXPECT_TRUE(ballast_.is_there() && is_on_disk());
}

TEST_F(BallastOfStore, NextLifeTakesItOverAndDropsAHalfMadeOne) {
  ASSERT_TRUE(ballast_.make());
  Ballast next(disk_, "store", kBallast);
  ASSERT_TRUE(next.open());
  EXPECT_TRUE(next.is_there());
  disk_.set_contents("store/ballast", "half");
  Ballast after(disk_, "store", kBallast);
  ASSERT_TRUE(after.open());
  EXPECT_FALSE(after.is_there() || is_on_disk());
}

TEST_F(BallastOfStore, ProbeTellsOfRoomAndLeavesNothing) {
  fill_but(kMiB);
  EXPECT_TRUE(ballast_.probe(kMiB));
  EXPECT_EQ(ballast_.probe(kMiB + 1).error().code, Code::kNoSpace);
  EXPECT_FALSE(ballast_.is_there() || is_on_disk());
  EXPECT_EQ(available(), kMiB);
}

TEST_F(BallastOfStore, RefusedMakingLeavesNothing) {
  fill_but(kMiB);
  EXPECT_EQ(ballast_.make().error().code, Code::kNoSpace);
  EXPECT_FALSE(ballast_.is_there() || is_on_disk());
  EXPECT_EQ(available(), kMiB);
}

}  // namespace
}  // namespace kvsyncfs
