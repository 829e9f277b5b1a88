// Locks that go with the last close of a handle, and those that do not.
#include "fs/handle_locks.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

constexpr InodeId kFile{7}, kOther{8};
constexpr std::uint64_t kOwner = 100, kProcess = 200;
using Owners = std::vector<std::uint64_t>;

TEST(HandleLocks, OwnerWhoseFlushDidNotComeGoesWithTheHandle) {
  HandleLocks locks;
  const std::uint64_t handle = 1, second = 2;
  EXPECT_NE(handle, second);
  locks.took(handle, kFile, kOwner);
  locks.took(handle, kFile, kOwner);
  EXPECT_TRUE(locks.released(second, kFile).empty());
  EXPECT_EQ(locks.released(handle, kFile), Owners{kOwner});
  EXPECT_TRUE(locks.released(handle, kFile).empty()) << "once";
}

TEST(HandleLocks, ProcessThatClosedTheHandleKeepsLocksOfALaterOne) {
  HandleLocks locks;
  const std::uint64_t first = 1, later = 2;
  locks.took(first, kFile, kProcess);
  locks.flushed(first, kFile, kProcess);
  locks.took(later, kFile, kProcess);
  EXPECT_TRUE(locks.released(first, kFile).empty());
}

TEST(HandleLocks, NameOfAnOwnerThatCameAgainIsTheNewHandles) {
  HandleLocks locks;
  const std::uint64_t first = 1, later = 2;
  locks.took(first, kFile, kOwner);
  locks.took(later, kFile, kOwner);
  EXPECT_TRUE(locks.released(first, kFile).empty());
  EXPECT_EQ(locks.released(later, kFile), Owners{kOwner});
  locks.took(first, kFile, kOwner);
  locks.took(later, kOther, kOwner);
  EXPECT_EQ(locks.released(first, kFile), Owners{kOwner}) << "another file's";
}

}  // namespace
}  // namespace kvsyncfs
