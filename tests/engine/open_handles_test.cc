// What a node of a cluster says of orphans follows from the handles that are open on it.
#include <gtest/gtest.h>

#include "engine/cluster_parts.h"

namespace kvsyncfs {
namespace {

constexpr InodeId kFile{77}, kOther{78};
using Inodes = std::vector<InodeId>;

TEST(OpenHandles, PagesAreRightUntilAnotherNodeChangesTheFile) {
  OpenHandles handles;
  EXPECT_FALSE(handles.open(kFile)) << "nothing is known of them";
  EXPECT_TRUE(handles.open(kFile));
  handles.close(kFile);
  handles.close(kFile);
  EXPECT_TRUE(handles.open(kFile));
  EXPECT_TRUE(handles.has_right_pages(kFile));
  handles.forget_pages(kFile);
  EXPECT_FALSE(handles.has_right_pages(kFile));
  EXPECT_FALSE(handles.open(kFile));
  EXPECT_FALSE(handles.open(kOther));
}

TEST(OpenHandles, OrphanIsReleasedIfNothingIsOpen) {
  OpenHandles handles;
  handles.orphaned(kFile);
  EXPECT_EQ(handles.take_news(10).released, Inodes{kFile});
  EXPECT_TRUE(handles.take_news(10).released.empty()) << "said once";
}

TEST(OpenHandles, OrphanIsHeldUntilTheLastCloseAndReleasedThen) {
  OpenHandles handles;
  handles.open(kFile);
  handles.open(kFile);
  handles.orphaned(kFile);
  EXPECT_EQ(handles.take_news(10).held, Inodes{kFile});
  handles.close(kFile);
  EXPECT_TRUE(handles.take_news(10).released.empty());
  handles.close(kFile);
  EXPECT_EQ(handles.take_news(10).released, Inodes{kFile});
}

TEST(OpenHandles, ClosedBeforeItWasAskedForIsReleasedOnce) {
  OpenHandles handles;
  handles.open(kFile);
  handles.orphaned(kFile);
  handles.close(kFile);
  const HoldOrphansCommand news = handles.take_news(10);
  EXPECT_EQ(news.released, Inodes{kFile});
  EXPECT_TRUE(news.held.empty());
  EXPECT_TRUE(handles.take_news(10).released.empty());
}

TEST(OpenHandles, OrphanMayBeOpenedUntilItWasLetGo) {
  OpenHandles handles;
  handles.orphaned(kFile);
  EXPECT_TRUE(handles.may_stay(kFile));
  handles.take_news(10);
  EXPECT_FALSE(handles.may_stay(kFile));
  handles.open(kOther);
  handles.orphaned(kOther);
  handles.take_news(10);
  EXPECT_TRUE(handles.may_stay(kOther));
}

TEST(OpenHandles, OrphanThatTheKernelUsesIsHeldUntilItLeavesTheKernel) {
  OpenHandles handles;
  handles.orphaned(kFile, true);
  EXPECT_EQ(handles.take_news(10).held, Inodes{kFile});
  handles.open(kFile);
  handles.close(kFile);
  EXPECT_TRUE(handles.take_news(10).released.empty()) << "the kernel has it still";
  handles.left_kernel(kFile);
  EXPECT_EQ(handles.take_news(10).released, Inodes{kFile});
  handles.left_kernel(kFile);
  EXPECT_TRUE(handles.take_news(10).released.empty()) << "said once";
}

TEST(OpenHandles, OrphanThatLeftTheKernelBeforeItWasAskedForIsReleasedOnce) {
  OpenHandles handles;
  handles.orphaned(kFile, true);
  handles.left_kernel(kFile);
  EXPECT_EQ(handles.take_news(10).released, Inodes{kFile});
  EXPECT_TRUE(handles.take_news(10).released.empty());
}

TEST(OpenHandles, WhatWasNotSaidIsSaidAgain) {
  OpenHandles handles;
  handles.open(kFile);
  handles.orphaned(kFile);
  handles.orphaned(kOther);
  handles.give_back(handles.take_news(10));
  const HoldOrphansCommand again = handles.take_news(1);
  EXPECT_EQ(again.held, Inodes{kFile});
  EXPECT_EQ(handles.take_news(10).released, Inodes{kOther});
}

}  // namespace
}  // namespace kvsyncfs
