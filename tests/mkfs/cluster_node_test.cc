#include "mkfs/cluster_node.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/env/real.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

ClusterOptions node(const std::string& name) {
  ClusterOptions cluster;
  cluster.address = "etcd://h:1";
  cluster.format.config.volume = "v";
  cluster.format.config.node = name;
  cluster.format.config.listen = "10.0.0.1:7420";
  return cluster;
}

TEST(ClusterNode, WhatWasGivenStays) {
  ClusterOptions cluster = node("n");
  ASSERT_TRUE(complete_cluster(*make_real_disk(), cluster));
  EXPECT_EQ(cluster.format.config.node, "n");
  EXPECT_EQ(cluster.format.config.listen, "10.0.0.1:7420");
  EXPECT_EQ(cluster.format.config.ca_file, "");
}

TEST(ClusterNode, TheHostsNameIsTheNodes) {
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  ClusterOptions cluster = node("");
  const Status complete = complete_cluster(*make_real_disk(), cluster);
  ASSERT_EQ(complete.has_value(), is_cluster_name(name));
  if (complete) {
    EXPECT_EQ(cluster.format.config.node, name);
  }
}

TEST(ClusterNode, FilesOfTheDaemonHaveAbsolutePaths) {
  ClusterOptions cluster = node("n");
  cluster.format.config.ca_file = "x/../ca.pem";
  cluster.format.config.password_file = "/etc/pw";
  ASSERT_TRUE(complete_cluster(*make_real_disk(), cluster));
  EXPECT_EQ(cluster.format.config.ca_file, (std::filesystem::current_path() / "ca.pem").string());
  EXPECT_EQ(cluster.format.config.password_file, "/etc/pw");
}

TEST(ClusterNode, AJoinReadsTheSecret) {
  const TempFolder folder;
  const std::string secret(kVolumeSecretSize, '\x5a');
  ClusterOptions cluster = node("n");
  cluster.format.join = true;
  cluster.secret_file = folder.path() + "/secret";
  EXPECT_EQ(complete_cluster(*make_real_disk(), cluster).error().code, Code::kNotFound);
  std::ofstream(cluster.secret_file) << encode_secret(secret);
  ASSERT_TRUE(complete_cluster(*make_real_disk(), cluster));
  EXPECT_EQ(cluster.format.secret, secret);
  std::ofstream(cluster.secret_file) << "5a";
  const Status bad = complete_cluster(*make_real_disk(), cluster);
  EXPECT_EQ(bad.error().code, Code::kInvalid);
  EXPECT_NE(bad.error().detail.find(cluster.secret_file), std::string::npos);
}

TEST(ClusterNode, TheNextNodesCommandIsForAShell) {
  ClusterOptions cluster = node("n");
  EXPECT_EQ(next_node_command(cluster),
            "mkfs.kvsyncfs --volume v --cluster etcd://h:1 --join --secret FILE STORE");
  cluster.address = "etcds://h:1";
  cluster.format.config.ca_file = "/etc/it's a ca";
  cluster.format.config.user = "u";
  cluster.format.config.password_file = "/etc/pw";
  EXPECT_EQ(next_node_command(cluster),
            "mkfs.kvsyncfs --volume v --cluster etcds://h:1 --ca '/etc/it'\\''s a ca' --user u "
            "--password-file /etc/pw --join --secret FILE STORE");
}

}  // namespace
}  // namespace kvsyncfs
