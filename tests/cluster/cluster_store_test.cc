// Stores of a cluster by the code of mkfs, over a real etcd.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/cluster_nodes.h"
#include "engine/env/real.h"
#include "mkfs/check_store.h"
#include "mkfs/make_store.h"
#include "tests/cluster/etcd_server.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

namespace stdfs = std::filesystem;

class MakeCluster : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::is_available()) GTEST_SKIP() << "no etcd-server";
    servers_ = std::make_unique<EtcdCluster>(folder_.path(), 1);
    ASSERT_TRUE(servers_->wait_until_listening());
  }
  MkfsOptions options(const std::string& node, bool join) {
    MkfsOptions options;
    options.store = folder_.path() + "/" + node;
    options.size = {kStoreSizeMin, 0};
    options.size_given = true;
    options.cluster.emplace();
    ClusterFormat& format = options.cluster->format;
    format.config.volume = "v";
    format.config.endpoints = servers_->endpoints();
    format.config.node = node;
    format.config.listen = "127.0.0.1:7420";
    format.join = join;
    if (join) format.secret = *read_volume_secret(*disk_, folder_.path() + "/a/secret");
    return options;
  }
  Result<Superblock> make(const MkfsOptions& options) {
    return make_store({*disk_, *clock_, *random_}, options, [](auto, auto) {});
  }

  TempFolder folder_;
  std::unique_ptr<EtcdCluster> servers_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
};

TEST_F(MakeCluster, TwoNodesOfOneVolume) {
  const auto a = make(options("a", false));
  ASSERT_TRUE(a) << describe(a.error());
  const auto b = make(options("b", true));
  ASSERT_TRUE(b) << describe(b.error());
  EXPECT_EQ(a->uuid, b->uuid);
  const auto mode = stdfs::status(folder_.path() + "/a/secret").permissions();
  EXPECT_EQ(mode, stdfs::perms::owner_read | stdfs::perms::owner_write);
  const auto config = read_cluster_config(*disk_, folder_.path() + "/b");
  ASSERT_TRUE(config);
  const auto nodes = list_cluster_nodes(*disk_, *clock_, *config);
  ASSERT_TRUE(nodes) << describe(nodes.error());
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[1].name, "b");
  EXPECT_EQ((*nodes)[1].record.id, config->id);
  EXPECT_EQ((*nodes)[1].record.store, config->store);
}

TEST_F(MakeCluster, ARefusalLeavesFolderAndStoreAsTheyWere) {
  ASSERT_TRUE(make(options("a", false)));
  MkfsOptions wrong = options("b", true);
  wrong.cluster->format.secret.assign(kVolumeSecretSize, 'x');
  EXPECT_EQ(make(wrong).error().code, Code::kAccess);
  EXPECT_FALSE(stdfs::exists(wrong.store));
  // --force must not empty a store for a node that the cluster does not take.
  MkfsOptions forced = wrong;
  forced.store = folder_.path() + "/a";
  forced.force = true;
  EXPECT_EQ(make(forced).error().code, Code::kAccess);
  EXPECT_TRUE(Engine::superblock(*disk_, forced.store));
  EXPECT_TRUE(stdfs::exists(forced.store + "/secret"));
}

TEST_F(MakeCluster, AnUnfinishedNodeIsTakenUpByTheSameCommandOnly) {
  ASSERT_TRUE(make(options("a", false)));
  const MkfsOptions b = options("b", true);
  ASSERT_TRUE(make(b));
  // As a crash before the superblock leaves it.
  ClusterConfig unfinished = *read_cluster_config(*disk_, b.store);
  unfinished.id = {};
  stdfs::remove(b.store + "/superblock");
  stdfs::remove(b.store + "/cluster");
  const auto file = disk_->open(b.store + "/cluster.new", OpenMode::kCreateNew, false);
  ASSERT_TRUE((*file)->write_at(0, as_bytes(encode(unfinished))));
  MkfsOptions other = b;
  other.cluster->format.config.node = "c";
  EXPECT_EQ(make(other).error().code, Code::kExists);
  MkfsOptions alone = b;
  alone.cluster.reset();
  EXPECT_EQ(make(alone).error().code, Code::kExists);
  const auto again = make(b);
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(read_cluster_config(*disk_, b.store)->id, NodeId{2});
  EXPECT_FALSE(stdfs::exists(b.store + "/cluster.new"));
}

TEST_F(MakeCluster, AnEtcdThatIsNotThereIsNamedWithTheReason) {
  MkfsOptions options = this->options("a", false);
  options.cluster->format.config.endpoints = {"127.0.0.1:1"};
  const std::uint64_t begin_ns = clock_->boot_ns();
  const auto made = make(options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kTimeout);
  EXPECT_NE(made.error().detail.find("etcd at 127.0.0.1:1"), std::string::npos);
  EXPECT_NE(made.error().detail.find("Connection refused"), std::string::npos)
      << made.error().detail;
  EXPECT_LT(clock_->boot_ns() - begin_ns, 15'000'000'000u);
  EXPECT_FALSE(stdfs::exists(options.store));
}

TEST_F(MakeCluster, FsckFindsANodeClean) {
  const MkfsOptions a = options("a", false);
  ASSERT_TRUE(make(a));
  FsckOptions fsck;
  fsck.store = a.store;
  const auto result = check_store({*disk_, *clock_, *random_}, fsck,
                                  {[](std::string_view) {}, [](auto, auto, auto) {}});
  ASSERT_TRUE(result) << describe(result.error());
  EXPECT_TRUE(result->is_node);
  EXPECT_EQ(result->status(), kFsckClean);
}

}  // namespace
}  // namespace kvsyncfs
