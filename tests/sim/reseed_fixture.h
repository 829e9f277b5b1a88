// Nodes of a volume at rest, over simulated disks and a simulated etcd. Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "engine/catalog/snapshot.h"
#include "engine/catalog_folder.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_reseed.h"
#include "engine/cluster_store.h"
#include "engine/engine_impl.h"
#include "engine/log/etcd/log_keys.h"
#include "engine/node_generation.h"
#include "tests/sim/engine_world.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline const std::string kStore = "/store";

class ReseedTest : public ::testing::Test {
 protected:
  struct Node {
    std::unique_ptr<SimDisk> disk;
    ClusterConfig config;
    Superblock superblock;
  };

  ReseedTest() {
    new_etcd();
    for (const char* name : {"a", "b", "c"}) add(name);
  }

  void new_etcd() {
    etcd_ = std::make_unique<SimEtcd>(clock_, ++seed_);
    client_ = etcd_->client();
  }
  void add(const std::string& name) {
    Node& node = nodes_[name];
    node.disk = std::make_unique<SimDisk>();
    ASSERT_TRUE(node.disk->make_directory(kStore) && node.disk->sync_directory("/"));
    ClusterFormat cluster;
    cluster.config.volume = "v";
    cluster.config.endpoints = {"h1:2379"};
    cluster.config.node = name;
    cluster.config.listen = "10.0.0.1:7420";
    cluster.join = name != "a";
    cluster.replicas = 3;
    if (cluster.join)
      cluster.secret = read_volume_secret(*nodes_["a"].disk, kStore + "/secret").value();
    FormatOptions options;
    options.store = kStore;
    options.size_bytes = kStoreSizeMin;
    const auto made = format_cluster_store(*node.disk, clock_, random_, *client_, options, cluster);
    ASSERT_TRUE(made) << describe(made.error());
    node.superblock = *made;
    node.config = read_cluster_config(*node.disk, kStore).value();
    ASSERT_TRUE(keep_volume_record(*node.disk, kStore, volume().volume(deadline()).value()));
  }
  VolumeRecordStore volume() { return {*client_, clock_, "v"}; }
  LogGenerations logs() { return {*client_, clock_, "v"}; }
  std::uint64_t deadline() { return clock_.boot_ns() + 10 * kSecond; }

  static CatalogOptions catalog_of(Disk& disk) {
    CatalogOptions options = catalog_options(kStore, 0);
    options.directory = catalog_folder(disk, kStore).value();
    return options;
  }
  /// As if the node had followed the log up to there.
  void bring_to(const std::string& name, std::uint64_t position) {
    Disk& disk = *nodes_[name].disk;
    ASSERT_TRUE(move_catalog(disk, catalog_of(disk), Position{position}));
  }
  Position position_of(const std::string& name) {
    Disk& disk = *nodes_[name].disk;
    return look_at_catalog(disk, catalog_of(disk)).value().applied;
  }
  Result<ReseedReport> reseed(const std::string& name, ReseedOptions options = {}) {
    return reseed_log(*nodes_[name].disk, clock_, random_, *client_, kStore, options);
  }
  Result<FollowedLog> mount(const std::string& name) {
    Node& node = nodes_[name];
    LogGenerations generations = logs();
    return follow_log(*node.disk, generations, kStore, node.config, node.superblock, deadline());
  }
  void expect_refused(const std::string& name, ReseedOptions options, Code code,
                      const std::string& words) {
    const std::int64_t revision = etcd_->revision();
    const auto done = reseed(name, options);
    ASSERT_FALSE(done) << words;
    EXPECT_EQ(done.error().code, code) << describe(done.error());
    EXPECT_NE(done.error().detail.find(words), std::string::npos) << done.error().detail;
    EXPECT_EQ(etcd_->revision(), revision) << "a refusal changes nothing";
  }
  void expect_kept_out(const std::string& name, const std::string& words) {
    const Position before = position_of(name);
    const auto followed = mount(name);
    ASSERT_FALSE(followed) << words;
    EXPECT_EQ(followed.error().code, Code::kStale);
    EXPECT_NE(followed.error().detail.find(words), std::string::npos) << followed.error().detail;
    EXPECT_EQ(position_of(name), before);
  }

  SimClock clock_;
  std::uint64_t seed_ = 0;
  std::unique_ptr<SimEtcd> etcd_;
  std::unique_ptr<etcd::EtcdClient> client_;
  SimRandomSource random_{1};
  std::map<std::string, Node> nodes_;
};

}  // namespace kvsyncfs
