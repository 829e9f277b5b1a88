#include "engine/lost_handles.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

constexpr InodeId kFile{7}, kOther{8};

TEST(LostHandles, AHandleOfALockedFileFailsUntilItIsClosed) {
  LostHandles files;
  const auto old = files.next_handle();
  files.lock_lost(kFile);
  const auto young = files.next_handle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(files.check(kFile, old).error().code, Code::kIo);
    EXPECT_EQ(files.check_bytes(kFile, old).error().code, Code::kIo);
  }
  EXPECT_TRUE(files.check(kFile, young));
  EXPECT_TRUE(files.check_bytes(kFile, young));
  EXPECT_TRUE(files.check(kOther, old));
  files.closed(kFile);
  EXPECT_TRUE(files.check(kFile, old));
}

TEST(LostHandles, LostBytesAreToldOnceToEachHandle) {
  LostHandles files;
  const auto a = files.next_handle(), b = files.next_handle();
  files.bytes_lost(kFile);
  const auto young = files.next_handle();
  EXPECT_TRUE(files.check(kFile, a)) << "only who asks after its bytes is told";
  EXPECT_EQ(files.check_bytes(kFile, a).error().code, Code::kIo);
  EXPECT_TRUE(files.check_bytes(kFile, a));
  EXPECT_EQ(files.check_bytes(kFile, b).error().code, Code::kIo);
  EXPECT_TRUE(files.check_bytes(kFile, b));
  EXPECT_TRUE(files.check_bytes(kFile, young));
  files.bytes_lost(kFile);
  EXPECT_EQ(files.check_bytes(kFile, a).error().code, Code::kIo) << "again lost, told again";
}

TEST(LostHandles, AHandleOfAFileThatIsGoneIsStaleUntilItIsClosed) {
  LostHandles files;
  const auto old = files.next_handle();
  files.lock_lost(kFile);
  files.file_lost(kFile);
  EXPECT_EQ(files.check(kFile, old).error().code, Code::kStale);
  EXPECT_EQ(files.check_bytes(kFile, old).error().code, Code::kStale);
  EXPECT_TRUE(files.check(kFile, files.next_handle()));
  files.closed(kFile);
  EXPECT_TRUE(files.check(kFile, old));
}

TEST(LostHandles, WhatHasNoHandleHasLostNothing) {
  LostHandles files;
  files.lock_lost(kFile);
  files.bytes_lost(kFile);
  EXPECT_TRUE(files.check(kFile, 0));
  EXPECT_TRUE(files.check_bytes(kFile, 0));
}

}  // namespace
}  // namespace kvsyncfs
