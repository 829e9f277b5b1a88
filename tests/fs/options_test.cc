#include "fs/options.h"

#include <gtest/gtest.h>

#include <string>

namespace kvsyncfs {
namespace {

Result<MountOptions> parse(const std::string& list) {
  return parse_mount_options({"/store", "/mnt", "-o", list});
}

TEST(MountOptions, OfTwoPathsAreTheDefaults) {
  const auto options = parse_mount_options({"/store", "/mnt"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->store, "/store");
  EXPECT_EQ(options->mountpoint, "/mnt");
  EXPECT_FALSE(options->foreground || options->debug || options->read_only);
  EXPECT_TRUE(options->atime);
  EXPECT_EQ(options->timeout_s, 15u);
  EXPECT_EQ(options->scrub_period_s, 7u * 86'400);
  EXPECT_EQ(options->cache_size_bytes, 0u);
  EXPECT_EQ(options->write_buffer_bytes, 64u << 20);
  EXPECT_EQ(options->log_level, "info");
  EXPECT_TRUE(options->kernel_options.empty());
}

TEST(MountOptions, StandAnywhereBetweenThePaths) {
  for (const auto& words : {std::vector<std::string>{"-o", "ro,timeout=7", "/store", "/mnt", "-f"},
                            {"/store", "-oro,timeout=7", "-f", "/mnt"},
                            {"-f", "/store", "/mnt", "-o", "ro", "-o", "timeout=7"}}) {
    const auto options = parse_mount_options(words);
    ASSERT_TRUE(options) << words[0];
    EXPECT_EQ(options->store, "/store");
    EXPECT_EQ(options->mountpoint, "/mnt");
    EXPECT_TRUE(options->read_only && options->foreground);
    EXPECT_EQ(options->timeout_s, 7u);
  }
}

TEST(MountOptions, AfterTwoDashesOnlyPathsFollow) {
  const auto options = parse_mount_options({"--", "-f", "-o"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->store, "-f");
  EXPECT_EQ(options->mountpoint, "-o");
}

TEST(MountOptions, WithoutAMountThereIsOnePath) {
  const auto options = parse_mount_options({"--no-mount", "/store", "-f"});
  ASSERT_TRUE(options) << describe(options.error());
  EXPECT_TRUE(options->no_mount && options->foreground);
  EXPECT_EQ(options->store, "/store");
  EXPECT_EQ(options->mountpoint, "");
  for (const auto& words :
       {std::vector<std::string>{"--no-mount"}, {"--no-mount", "/store", "/mnt"}, {"/store"}}) {
    const auto refused = parse_mount_options(words);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalid);
  }
}

TEST(MountOptions, OfTlsNeedEachOtherAndWholePaths) {
  const auto options = parse("tls_cert=/c,tls_key=/k,tls_ca=/a");
  ASSERT_TRUE(options) << describe(options.error());
  EXPECT_EQ(options->tls_certificate, "/c");
  EXPECT_EQ(options->tls_key, "/k");
  EXPECT_EQ(options->tls_authority, "/a");
  for (const char* bad :
       {"tls_cert=/c", "tls_cert=/c,tls_key=/k", "tls_cert=c,tls_key=/k,tls_ca=/a"})
    EXPECT_FALSE(parse(bad)) << bad;
}

TEST(MountOptions, WithValuesAreRead) {
  const auto options = parse(
      "cache_size=1G,write_buffer=8M,timeout=60,log_level=debug,noatime,log_size=4G,"
      "scrub_period=0");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->cache_size_bytes, 1u << 30);
  EXPECT_EQ(options->write_buffer_bytes, 8u << 20);
  EXPECT_EQ(options->log_size_bytes, std::uint64_t{4} << 30);
  EXPECT_EQ(options->timeout_s, 60u);
  EXPECT_EQ(options->scrub_period_s, 0u);
  EXPECT_EQ(parse("scrub_period=3600")->scrub_period_s, 3600u);
  EXPECT_EQ(options->log_level, "debug");
  EXPECT_FALSE(options->atime);
}

TEST(MountOptions, RemountIsRefusedWithTheWayToDoIt) {
  const auto options = parse("remount,ro");
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, Code::kUnsupported);
  EXPECT_NE(options.error().detail.find("mount -i"), std::string::npos);
}

TEST(MountOptions, TheLastOfRoAndRwCounts) {
  EXPECT_TRUE(parse("rw,ro")->read_only);
  EXPECT_FALSE(parse("ro,rw")->read_only);
}

TEST(MountOptions, WordsOfFstabForOthersAreDropped) {
  const auto options = parse(
      "defaults,_netdev,nofail,noauto,user,allow_other,default_permissions,x-systemd.automount,"
      "x-anything=1,,comment=a");
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->kernel_options.empty());
}

TEST(MountOptions, WordsForTheKernelArePassedOn) {
  const auto options = parse("nodev,ro,nosuid,noexec");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->kernel_options, (std::vector<std::string>{"nodev", "nosuid", "noexec"}));
}

TEST(MountOptions, TheLaterOfTwoOppositeWordsCounts) {
  EXPECT_EQ(parse("nodev,noexec,dev")->kernel_options, (std::vector<std::string>{"noexec", "dev"}));
  EXPECT_EQ(parse("suid,nosuid")->kernel_options, (std::vector<std::string>{"nosuid"}));
  EXPECT_TRUE(parse("noatime,atime")->atime);
}

TEST(MountOptions, TheSourceCanBeNamedTheTypeCannot) {
  EXPECT_EQ(parse("fsname=volume,subtype=kvsyncfs")->fsname, "volume");
  EXPECT_FALSE(parse("subtype=other"));
}

TEST(MountOptions, TheLaterOfTwoOppositeKernelWordsCounts) {
  EXPECT_EQ(parse("dev,nodev")->kernel_options, std::vector<std::string>{"nodev"});
  const auto options = parse("nodev,dev");
  ASSERT_TRUE(options);
  for (const std::string& word : options->kernel_options) EXPECT_NE(word, "nodev");
}

TEST(MountOptions, SourceIsTheNameGiven) {
  EXPECT_EQ(parse("ro")->fsname, "");
  EXPECT_EQ(parse("fsname=my volume")->fsname, "my volume");
}

TEST(MountOptions, DebugStaysInTheForeground) {
  const auto options = parse_mount_options({"/store", "/mnt", "-d"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->debug && options->foreground);
}

TEST(MountOptions, HelpAndVersionNeedNoPaths) {
  EXPECT_TRUE(parse_mount_options({"--help"})->help);
  EXPECT_TRUE(parse_mount_options({"-h"})->help);
  EXPECT_TRUE(parse_mount_options({"--version"})->version);
  EXPECT_TRUE(parse_mount_options({"-V"})->version);
}

TEST(MountOptions, WithAFaultAreRefusedByName) {
  for (const char* word : {"blah",
                           "blah=1",
                           "cache_size=abc",
                           "cache_size=",
                           "cache_size=50%",
                           "cache_size",
                           "write_buffer=1K",
                           "log_size=255K",
                           "timeout=0",
                           "timeout=-5",
                           "timeout=3601",
                           "timeout=1s",
                           "timeout=",
                           "timeout",
                           "scrub_period=",
                           "scrub_period=-1",
                           "log_level=shout",
                           "roo",
                           "ro=1",
                           "noatime=1"}) {
    const auto options = parse("rw," + std::string(word));
    ASSERT_FALSE(options) << word;
    EXPECT_EQ(options.error().code, Code::kInvalid) << word;
    EXPECT_NE(options.error().detail.find(word), std::string::npos) << options.error().detail;
  }
}

TEST(MountOptions, SizesAboveTheMemoryAreRefusedByName) {
  constexpr std::uint64_t kMemory = std::uint64_t{8} << 30;
  EXPECT_TRUE(check_sizes(parse("cache_size=8G,write_buffer=8G").value(), kMemory));
  for (const char* name : {"cache_size", "write_buffer"}) {
    const Status fit = check_sizes(parse(std::string(name) + "=64T").value(), kMemory);
    ASSERT_FALSE(fit) << name;
    EXPECT_EQ(fit.error().code, Code::kNoMemory);
    EXPECT_EQ(fit.error().detail,
              std::string("option ") + name +
                  ": 64.0 TiB are more than the 8.0 GiB of memory of this machine");
  }
}

TEST(MountOptions, WithoutExactlyTwoPathsAreRefused) {
  const std::vector<std::string> three = {"/store", "/mnt", "/more"};
  for (std::size_t count : {0u, 1u, 3u}) {
    const auto options =
        parse_mount_options({three.begin(), three.begin() + static_cast<long>(count)});
    ASSERT_FALSE(options) << count;
    EXPECT_EQ(options.error().code, Code::kInvalid);
  }
}

TEST(MountOptions, UnknownArgumentsAreRefusedByName) {
  for (const char* word : {"--nonsense", "-x", "-o"}) {
    const auto options = parse_mount_options({"/store", "/mnt", word});
    ASSERT_FALSE(options) << word;
    EXPECT_NE(options.error().detail.find(word), std::string::npos) << options.error().detail;
  }
}

TEST(MountHelp, NamesEveryOptionWithAValue) {
  for (const char* name :
       {"cache_size=", "write_buffer=", "timeout=", "log_level=", "noatime", "--version"}) {
    EXPECT_NE(mount_help().find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace kvsyncfs
