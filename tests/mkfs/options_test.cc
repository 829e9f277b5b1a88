#include <gtest/gtest.h>

#include "mkfs/fsck_options.h"
#include "mkfs/mkfs_options.h"

namespace kvsyncfs {
namespace {

TEST(MkfsOptions, DefaultsAndAll) {
  auto options = parse_mkfs_options({"/srv/kv"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->store, "/srv/kv");
  EXPECT_EQ(options->size.of(1000), 800u);
  EXPECT_FALSE(options->force || options->quiet || options->uuid || options->size_given);
  options = parse_mkfs_options({"--size", "1G", "--label=a b", "--uuid",
                                "10111213-1415-1617-1819-1a1b1c1d1e1f", "--force", "-q", "s"});
  ASSERT_TRUE(options) << options.error().detail;
  EXPECT_EQ(options->size.bytes, 1u << 30);
  EXPECT_EQ(options->label, "a b");
  EXPECT_TRUE(options->force && options->quiet && options->size_given);
  EXPECT_EQ((*options->uuid)[15], 0x1f);
}

TEST(MkfsOptions, ErrorsNameTheOption) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{}, "STORE"},
      {{""}, "STORE"},
      {{"a", "b"}, "b"},
      {{"--frobnicate", "a"}, "--frobnicate"},
      {{"a", "--size"}, "--size"},
      {{"a", "--size", "10X"}, "10X"},
      {{"a", "--size", ""}, "--size"},
      {{"a", "--uuid", "1234"}, "--uuid"},
      {{"a", "--label", std::string(65, 'l')}, "--label"},
      {{"a", "--label", "a\nb"}, "--label"}};
  for (const auto& [arguments, named] : cases) {
    const auto options = parse_mkfs_options(arguments);
    ASSERT_FALSE(options) << named;
    EXPECT_EQ(options.error().code, Code::kInvalid);
    EXPECT_NE(options.error().detail.find(named), std::string::npos) << options.error().detail;
  }
}

TEST(MkfsOptions, HelpAndVersionNeedNoStore) {
  EXPECT_TRUE(parse_mkfs_options({"--help"})->help);
  EXPECT_TRUE(parse_mkfs_options({"--version"})->version);
  EXPECT_NE(mkfs_help().find("--size"), std::string::npos);
}

TEST(FsckOptions, UnderstandsWhatFsckHandsOn) {
  for (const char* word : {"-a", "-p", "-y", "-r", "--repair"}) {
    const auto options = parse_fsck_options({word, "s"});
    ASSERT_TRUE(options) << word;
    EXPECT_TRUE(options->repair) << word;
  }
  const auto options = parse_fsck_options({"-n", "-f", "--scrub", "s"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->scrub);
  EXPECT_FALSE(options->repair);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"-a", "-C0", "s"}, {"-C", "-y", "s"}, {"-a", "-C", "5", "s"}, {"-C-3", "-fp", "s"}}) {
    const auto with_progress = parse_fsck_options(words);
    ASSERT_TRUE(with_progress) << words[0];
    EXPECT_TRUE(with_progress->repair);
    EXPECT_EQ(with_progress->store, "s");
  }
  EXPECT_FALSE(parse_fsck_options({"-Cx", "s"}));
  EXPECT_FALSE(parse_fsck_options({"-n", "-y", "s"}));
  EXPECT_FALSE(parse_fsck_options({}));
  EXPECT_FALSE(parse_fsck_options({"--size", "s"}));
}

}  // namespace
}  // namespace kvsyncfs
