#include "tools/stat_target.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <map>

#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kTable =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "40 22 0:51 / /mnt/kv rw,nosuid shared:3 master:1 - fuse.kvsyncfs /srv/kv rw,user_id=0\n"
    "41 22 0:52 / /mnt/a\\040b\\134c rw - fuse.kvsyncfs x rw\n"
    "not a line\n"
    "42 22 0:53 / /mnt/other rw - fuse.sshfs host: rw\n"
    "43 22 0:x / /mnt/bad rw - fuse.kvsyncfs x rw\n";

class Links {
 public:
  explicit Links(std::map<std::string, std::string> links) : links_(std::move(links)) {}
  ReadLink reader() {
    return [this](const std::string& path) -> std::optional<std::string> {
      touched_.push_back(path);
      const auto found = links_.find(path);
      if (found == links_.end()) return std::nullopt;
      return found->second;
    };
  }
  const std::vector<std::string>& touched() const { return touched_; }

 private:
  std::map<std::string, std::string> links_;
  std::vector<std::string> touched_;
};

std::string resolved(std::string_view path, Links& links, std::string_view working = "/home") {
  const auto mounts = parse_mount_table(kTable);
  const auto found = resolve(path, working, mounts, links.reader());
  if (!found) return "error " + found.error().detail;
  return found->path + (found->mount ? " on " + std::to_string(minor(found->mount->device)) : "");
}

TEST(StatTarget, MountIsFoundFromAnyPathOnIt) {
  Links links({});
  EXPECT_EQ(resolved("/mnt/kv", links), "/mnt/kv on 51");
  EXPECT_EQ(resolved("/mnt/kv/", links), "/mnt/kv on 51");
  EXPECT_EQ(resolved("/mnt//kv/a/b", links), "/mnt/kv on 51");
  EXPECT_EQ(resolved("../mnt/./kv", links), "/mnt/kv on 51");
  EXPECT_EQ(resolved("b", links, "/mnt/kv/a"), "/mnt/kv on 51");
  EXPECT_EQ(resolved("/mnt/a b\\c", links), "/mnt/a b\\c on 52");
}

TEST(StatTarget, TheWayOnTheMountIsKept) {
  Links links({});
  const auto mounts = parse_mount_table(kTable);
  EXPECT_EQ(resolve("/mnt/kv/a/./b/", "/", mounts, links.reader())->rest, "a/b");
  EXPECT_EQ(resolve("c", "/mnt/kv/a", mounts, links.reader())->rest, "a/c");
  EXPECT_EQ(resolve("/mnt/kv", "/", mounts, links.reader())->rest, "");
}

TEST(StatTarget, TheMountItselfIsNeverTouched) {
  Links links({});
  resolved("/mnt/kv/a/b", links);
  EXPECT_EQ(links.touched(), std::vector<std::string>{"/mnt"});
}

TEST(StatTarget, OtherPathsAndOtherFileSystemsAreNotAMount) {
  Links links({});
  EXPECT_EQ(resolved("/mnt/kvx", links), "/mnt/kvx");
  EXPECT_EQ(resolved("/mnt/other/x", links), "/mnt/other/x");
  EXPECT_EQ(resolved("/srv/kv", links), "/srv/kv");
  EXPECT_EQ(resolved("store", links), "/home/store");
  EXPECT_EQ(resolved("../../..", links), "/");
}

TEST(StatTarget, SymbolicLinksAreFollowed) {
  Links links({{"/home/kv", "../mnt/kv"}, {"/data", "/mnt"}, {"/home/self", "self"}});
  EXPECT_EQ(resolved("kv/x", links), "/mnt/kv on 51");
  EXPECT_EQ(resolved("/data/kv", links), "/mnt/kv on 51");
  EXPECT_EQ(resolved("/data/../x", links), "/x");
  EXPECT_EQ(resolved("self", links), "error self: too many symbolic links");
}

TEST(StatTarget, TheTopmostOfTwoMountsCounts) {
  const std::string hidden = std::string(kTable) +
                             "50 22 0:60 / /mnt/kv rw - fuse.kvsyncfs y rw\n"
                             "51 22 0:61 / /mnt/a\\040b\\134c rw - tmpfs y rw\n";
  const auto mounts = parse_mount_table(hidden);
  Links links({});
  const auto found = resolve("/mnt/kv", "/", mounts, links.reader());
  ASSERT_TRUE(found && found->mount);
  EXPECT_EQ(minor(found->mount->device), 60u);
  EXPECT_FALSE(resolve("/mnt/a b\\c", "/", mounts, links.reader())->mount);
}

TEST(StatTarget, AFolderThatIsNoStoreAndAMissingOneAreNamed) {
  const TempFolder folder;
  const auto no_store = find_target(folder.path());
  ASSERT_FALSE(no_store);
  EXPECT_NE(describe(no_store.error()).find(folder.path()), std::string::npos);
  const auto missing = find_target(folder.path() + "/none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().detail.find("/none"), std::string::npos);
}

}  // namespace
}  // namespace kvsyncfs
