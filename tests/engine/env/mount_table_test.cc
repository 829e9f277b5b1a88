#include "engine/env/mount_table.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <filesystem>

#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

constexpr const char* kTable =
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "30 22 0:44 / /mnt/kv rw,nosuid shared:7 master:1 - fuse.kvsyncfs /srv/kv rw,user_id=0\n"
    "31 22 0:45 / /mnt/with\\040blank\\134 rw - fuse.kvsyncfs /srv/a\\011b rw\n"
    "32 22 0:46 / /mnt/kv rw - tmpfs none rw\n";

TEST(MountTable, LinesAreReadWithAnyNumberOfOptionalFields) {
  const auto table = parse_mount_table(kTable);
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0].device, makedev(254, 0));
  EXPECT_EQ(table[0].mountpoint, "/");
  EXPECT_EQ(table[1].device, makedev(0, 44));
  EXPECT_EQ(table[1].type, kMountType);
  EXPECT_EQ(table[1].source, "/srv/kv");
}

TEST(MountTable, EscapesAreUndone) {
  const auto entry = mount_at(parse_mount_table(kTable), "/mnt/with blank\\");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->source, "/srv/a\tb");
}

TEST(MountTable, TheTopmostMountHidesTheOthers) {
  const auto entry = mount_at(parse_mount_table(kTable), "/mnt/kv");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->type, "tmpfs");
  EXPECT_FALSE(mount_at(parse_mount_table(kTable), "/mnt"));
}

TEST(MountTable, LinesThatDoNotParseAreLeftOut) {
  for (const char* line :
       {"", "x", "30 22 0:44 / /mnt rw", "30 22 044 / /mnt rw - fuse a rw",
        "30 22 0: / /m rw - f a r", "30 22 0:44x / /mnt rw - fuse a rw",
        "30 22 :44 / /mnt rw - fuse a rw", "30 22 0:44 / /mnt rw -", "30 22 0:44 / - fuse a rw"}) {
    EXPECT_TRUE(parse_mount_table(line).empty()) << line;
  }
}

TEST(MountTable, OfThisMachineHasARoot) {
  const auto table = read_mount_table();
  ASSERT_TRUE(table);
  EXPECT_TRUE(mount_at(*table, "/"));
}

TEST(MountPath, OfATableEntryIsItselfWithoutALookAtIt) {
  const auto table = parse_mount_table("30 22 0:44 / /no/such/place rw - fuse.kvsyncfs a rw\n");
  EXPECT_EQ(mount_path("/no/such/place", table), "/no/such/place");
  EXPECT_EQ(mount_path("/no/such/place///", table), "/no/such/place");
}

TEST(MountPath, FollowsLinksToAMount) {
  TempFolder folder;
  const std::string root = std::filesystem::canonical(folder.path());
  std::filesystem::create_directories(root + "/real/mnt");
  std::filesystem::create_symlink("real", root + "/above");
  std::filesystem::create_symlink("real/mnt", root + "/relative");
  std::filesystem::create_symlink(root + "/above/mnt", root + "/absolute");
  const std::vector<MountEntry> table = {{1, root + "/real/mnt", std::string(kMountType), "s"}};
  for (const char* name :
       {"/real/mnt", "/above/mnt", "/relative", "/absolute", "/real/../real/mnt/", "/real/mnt/."}) {
    EXPECT_EQ(mount_path(root + name, table), root + "/real/mnt") << name;
  }
}

TEST(MountPath, OfALoopOfLinksEnds) {
  TempFolder folder;
  std::filesystem::create_symlink("b", folder.path() + "/a");
  std::filesystem::create_symlink("a", folder.path() + "/b");
  EXPECT_FALSE(mount_at({}, mount_path(folder.path() + "/a", {})));
}

}  // namespace
}  // namespace kvsyncfs
