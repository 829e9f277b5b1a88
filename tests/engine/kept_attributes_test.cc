// A change is acknowledged only after the kernel forgot what it kept.
#include "engine/kept_attributes.h"

#include <gtest/gtest.h>

#include <string>

namespace kvsyncfs {
namespace {

constexpr InodeId kFile{77}, kOther{78};
constexpr std::uint64_t kNow = 5'000, kUntil = 9'000;

class KeptAttributesTest : public ::testing::Test {
 protected:
  KeptAttributesTest() {
    kept_.set_forget(
        [this](InodeId inode) {
          did_ += "f" + std::to_string(inode.value) + " ";
          return known_after_ == 0 || known_after_-- == 1;
        },
        [this](InodeId) { return retained_; });
  }
  void tell(const std::string& word) {
    kept_.when_told([this, word] { did_ += word + " "; });
  }

  KeptAttributes kept_;
  std::string did_;
  int known_after_ = 0;  // calls; the kernel does not know the inode before
  bool retained_ = false;
};

TEST_F(KeptAttributesTest, WhatNobodyKeepsDelaysNoAcknowledgement) {
  kept_.changed(kFile);
  tell("ack");
  EXPECT_EQ(did_, "ack ");
}

TEST_F(KeptAttributesTest, AcknowledgementComesAfterTheKernelWasTold) {
  ASSERT_TRUE(kept_.keep(kFile, kUntil, kNow));
  kept_.changed(kOther);
  kept_.changed(kFile);
  tell("ack1");
  tell("ack2");
  EXPECT_EQ(did_, "") << "the applier waits for no kernel";
  kept_.run();
  EXPECT_EQ(did_, "f77 ack1 ack2 ");
  kept_.changed(kFile);
  tell("ack3");
  EXPECT_EQ(did_, "f77 ack1 ack2 ack3 ") << "it was told, and asked for nothing since";
}

TEST_F(KeptAttributesTest, LaterAcknowledgementDoesNotOvertake) {
  ASSERT_TRUE(kept_.keep(kFile, kUntil, kNow));
  kept_.changed(kFile);
  tell("of the change");
  tell("of a later one that touches nothing kept");
  EXPECT_EQ(did_, "");
}

TEST_F(KeptAttributesTest, InodeThatTheKernelDoesNotKnowYetIsToldAgain) {
  ASSERT_TRUE(kept_.keep(kFile, kUntil, kNow));
  known_after_ = 3;
  retained_ = true;
  kept_.changed(kFile);
  kept_.run();
  EXPECT_EQ(did_, "f77 f77 f77 ");
}

TEST_F(KeptAttributesTest, InodeThatTheKernelForgotIsToldOnce) {
  ASSERT_TRUE(kept_.keep(kFile, kUntil, kNow));
  known_after_ = 3;
  kept_.changed(kFile);
  kept_.run();
  EXPECT_EQ(did_, "f77 ");
}

TEST_F(KeptAttributesTest, WithTheLeaseEverythingIsForgotten) {
  EXPECT_FALSE(kept_.keep(kFile, kNow, kNow)) << "no lease";
  ASSERT_TRUE(kept_.keep(kFile, kUntil, kNow));
  kept_.all_changed();
  kept_.run();
  EXPECT_EQ(did_, "f77 ");
}

TEST_F(KeptAttributesTest, WithoutAWayToTheKernelNothingIsKept) {
  kept_.set_forget({}, {});
  EXPECT_FALSE(kept_.keep(kFile, kUntil, kNow));
}

TEST_F(KeptAttributesTest, FullTableKeepsNoMoreUntilTimeHasGone) {
  for (std::uint64_t i = 1; i <= KeptAttributes::kKeptMax; ++i)
    ASSERT_TRUE(kept_.keep(InodeId{i}, kUntil, kNow));
  EXPECT_TRUE(kept_.keep(InodeId{1}, kUntil, kNow)) << "it has its place";
  EXPECT_FALSE(kept_.keep(InodeId{KeptAttributes::kKeptMax + 1}, kUntil + 1, kUntil));
  const std::uint64_t later = kUntil + 2'000'000'000;
  EXPECT_TRUE(kept_.keep(InodeId{KeptAttributes::kKeptMax + 1}, later + 1, later));
}

}  // namespace
}  // namespace kvsyncfs
