#include <gtest/gtest.h>

#include <tuple>

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

TEST(MkfsOptions, ANodeOfACluster) {
  auto options = parse_mkfs_options({"s", "--volume", "v", "--cluster", "etcd://h1:2379,h2:1"});
  ASSERT_TRUE(options) << options.error().detail;
  ASSERT_TRUE(options->cluster);
  const ClusterFormat& least = options->cluster->format;
  EXPECT_EQ(least.config.volume, "v");
  EXPECT_EQ(least.config.endpoints, (std::vector<std::string>{"h1:2379", "h2:1"}));
  EXPECT_EQ(least.replicas, 2u);
  EXPECT_FALSE(least.config.tls || least.join || least.force);
  options = parse_mkfs_options({"--volume",
                                "v",
                                "--cluster",
                                "etcds://h:2379",
                                "--join",
                                "--secret",
                                "f",
                                "--node",
                                "n",
                                "--rack",
                                "r",
                                "--listen",
                                "[::1]:99",
                                "--user",
                                "u",
                                "-f",
                                "--password-file",
                                "p",
                                "--ca",
                                "a",
                                "--cert",
                                "c",
                                "--key",
                                "k",
                                "s"});
  ASSERT_TRUE(options) << options.error().detail;
  const ClusterFormat& all = options->cluster->format;
  EXPECT_TRUE(all.config.tls && all.join && all.force);
  EXPECT_EQ(options->cluster->secret_file, "f");
  EXPECT_EQ(all.config.node + all.config.rack + all.config.listen, "nr[::1]:99");
  EXPECT_EQ(all.config.user + all.config.password_file, "up");
  EXPECT_EQ(all.config.ca_file + all.config.certificate_file + all.config.key_file, "ack");
  options = parse_mkfs_options({"s", "--volume=v", "--cluster=etcd://h:1", "--replicas=8"});
  EXPECT_EQ(options->cluster->format.replicas, 8u);
  EXPECT_FALSE(parse_mkfs_options({"s"})->cluster);
}

TEST(MkfsOptions, WrongCombinationsNameTheOption) {
  const std::vector<std::string> node = {"s", "--volume", "v", "--cluster", "etcd://h:1"};
  const std::vector<std::string> tls = {"s", "--volume", "v", "--cluster", "etcds://h:1"};
  const std::vector<std::string> alone = {"s"};
  const std::tuple<std::vector<std::string>, std::vector<std::string>, const char*> cases[] = {
      {alone, {"--volume", "v"}, "--volume needs --cluster"},
      {alone, {"--cluster", "etcd://h:1"}, "--cluster needs --volume"},
      {alone, {"--rack", "r"}, "--rack needs --volume"},
      {alone, {"--replicas", "2"}, "--replicas needs --volume"},
      {alone, {"--user", "u"}, "--user needs --volume"},
      {node, {"--join"}, "--join needs --secret"},
      {node, {"--secret", "f"}, "--secret needs --join"},
      {node, {"--user", "u"}, "--user needs --password-file"},
      {node, {"--password-file", "f"}, "--password-file needs --user"},
      {node, {"--ca", "f"}, "--ca needs --cluster etcds"},
      {tls, {"--cert", "f"}, "--cert needs --key"},
      {tls, {"--key", "f"}, "--key needs --cert"},
      {node, {"--join", "--secret", "f", "--replicas", "2"}, "--replicas is the volume's"},
      {node,
       {"--join", "--secret", "f", "--uuid", "10111213-1415-1617-1819-1a1b1c1d1e1f"},
       "--uuid is the volume's"},
      {node, {"--replicas", "0"}, "--replicas: 0"},
      {node, {"--replicas", "9"}, "--replicas: 9"},
      {node, {"--replicas", "two"}, "--replicas"},
      {node, {"--node", "a/b"}, "--node: 'a/b'"},
      {node, {"--rack", ""}, "--rack: ''"},
      {node, {"--listen", "10.0.0.1"}, "--listen: '10.0.0.1'"},
      {node, {"--listen", "10.0.0.1:0"}, "--listen: '10.0.0.1:0'"},
      {node, {"--listen", "host:7420"}, "not a numeric address"},
      {node, {"--listen", "0.0.0.0:7420"}, "cannot dial"},
      {node, {"--listen", "[::]:7420"}, "cannot dial"},
      {{"s", "--volume", "a b", "--cluster", "etcd://h:1"}, {}, "--volume: 'a b'"},
      {{"s", "--volume", "v", "--cluster", "http://h:1"}, {}, "--cluster: 'http://h:1'"},
      {{"s", "--volume", "v", "--cluster", "etcd://h"}, {}, "'h' is not HOST:PORT"},
      {{"s", "--volume", "v", "--cluster", "etcd://h:1,"}, {}, "'' is not HOST:PORT"}};
  for (const auto& [base, more, words] : cases) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto options = parse_mkfs_options(arguments);
    ASSERT_FALSE(options) << words;
    EXPECT_EQ(options.error().code, Code::kInvalid);
    EXPECT_NE(options.error().detail.find(words), std::string::npos) << options.error().detail;
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
