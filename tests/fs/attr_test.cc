#include "fs/attr.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

TEST(Attributes, OfAnInodeArriveUnchanged) {
  Inode inode;
  inode.mode = S_IFREG | 04755;
  inode.uid = 1000;
  inode.gid = 2000;
  inode.link_count = 3;
  inode.size = std::uint64_t{5} << 40;
  inode.atime = {1, 2};
  inode.mtime = {3, 4};
  inode.ctime = {5, 6};
  const struct stat st = to_stat(InodeId{std::uint64_t{1} << 40}, inode);
  EXPECT_EQ(st.st_ino, std::uint64_t{1} << 40);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFREG | 04755));
  EXPECT_EQ(st.st_uid, 1000u);
  EXPECT_EQ(st.st_gid, 2000u);
  EXPECT_EQ(st.st_nlink, 3u);
  EXPECT_EQ(st.st_size, off_t{5} << 40);
  EXPECT_EQ(st.st_atim.tv_sec * 10 + st.st_atim.tv_nsec, 12);
  EXPECT_EQ(st.st_mtim.tv_sec * 10 + st.st_mtim.tv_nsec, 34);
  EXPECT_EQ(st.st_ctim.tv_sec * 10 + st.st_ctim.tv_nsec, 56);
}

TEST(Attributes, BlocksAreOf512BytesRoundedUp) {
  Inode inode;
  for (const auto& [bytes, blocks] :
       {std::pair{0u, 0}, {1u, 1}, {512u, 1}, {513u, 2}, {4096u, 8}}) {
    inode.allocated_bytes = bytes;
    EXPECT_EQ(to_stat(kRootInode, inode).st_blocks, blocks) << bytes;
  }
}

TEST(Attributes, TimesBefore1970KeepTheirNanoseconds) {
  Inode inode;
  inode.mtime = {-2, 750'000'000};
  const struct stat st = to_stat(kRootInode, inode);
  EXPECT_EQ(st.st_mtim.tv_sec, -2);
  EXPECT_EQ(st.st_mtim.tv_nsec, 750'000'000);
}

TEST(Attributes, SizeOfASymlinkIsThatOfItsTarget) {
  Inode inode;
  inode.mode = S_IFLNK | 0777;
  inode.target = "some/where";
  EXPECT_EQ(to_stat(kRootInode, inode).st_size, 10);
}

TEST(Attributes, DeviceNumbersArriveUnchanged) {
  Inode inode;
  inode.mode = S_IFCHR | 0600;
  inode.device = 0x0103;
  EXPECT_EQ(to_stat(kRootInode, inode).st_rdev, 0x0103u);
}

}  // namespace
}  // namespace kvsyncfs
