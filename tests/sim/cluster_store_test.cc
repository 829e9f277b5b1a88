// Stores of a cluster, made over a simulated disk and etcd: what they hold, what is refused, and
// that no crash and no fault of etcd stands in the way of the next try.
#include "engine/cluster_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/catalog/catalog.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/engine_impl.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/log/etcd/log_keys.h"
#include "engine/net/auth.h"
#include "tests/sim/engine_world.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
const std::string kStore = "/store";

class ClusterStore : public ::testing::Test {
 protected:
  ClusterStore() { new_etcd(1); }

  void new_etcd(std::uint64_t seed) {
    etcd_ = std::make_unique<SimEtcd>(clock_, seed);
    client_ = etcd_->client();
  }

  static std::unique_ptr<SimDisk> new_disk() {
    auto disk = std::make_unique<SimDisk>();
    EXPECT_TRUE(disk->make_directory(kStore));
    EXPECT_TRUE(disk->sync_directory("/"));
    return disk;
  }
  static ClusterFormat cluster_of(const std::string& node) {
    ClusterFormat cluster;
    cluster.config.volume = "v";
    cluster.config.endpoints = {"h1:2379", "h2:2379"};
    cluster.config.node = node;
    cluster.config.rack = "r";
    cluster.config.listen = "10.0.0.1:7420";
    return cluster;
  }
  ClusterFormat joining(const std::string& node) {
    ClusterFormat cluster = cluster_of(node);
    cluster.join = true;
    const auto secret = read_volume_secret(*disk_, kStore + "/secret");
    EXPECT_TRUE(secret);
    cluster.secret = *secret;
    return cluster;
  }
  FormatOptions format_options() const {
    FormatOptions options;
    options.store = kStore;
    options.size_bytes = kStoreSizeMin;
    options.uid = 1000;
    options.gid = 100;
    return options;
  }

  Result<Superblock> make(SimDisk& disk, const ClusterFormat& cluster) {
    return format_cluster_store(disk, clock_, random_, *client_, format_options(), cluster);
  }
  Result<Superblock> make() { return make(*disk_, cluster_); }
  /// As mkfs does before it tries again.
  static void clear(SimDisk& disk) {
    for (const char* folder : {"/catalog", "/segments", "/spare"}) {
      const auto names = disk.list(kStore + folder);
      if (!names) continue;
      for (const std::string& name : *names)
        ASSERT_TRUE(disk.remove(kStore + folder + "/" + name)) << name;
      ASSERT_TRUE(disk.remove_directory(kStore + folder));
    }
    for (const char* file : {"/superblock", "/ballast", "/cluster"})
      (void)disk.remove(kStore + file);
  }
  void expect_refused(SimDisk& disk, const ClusterFormat& cluster, Code code,
                      const std::string& words) {
    const auto names = disk.list(kStore);
    const std::int64_t revision = etcd_->revision();
    const Result<Superblock> made = make(disk, cluster);
    ASSERT_FALSE(made) << words;
    EXPECT_EQ(made.error().code, code) << describe(made.error());
    EXPECT_NE(made.error().detail.find(words), std::string::npos) << made.error().detail;
    EXPECT_EQ(*disk.list(kStore), *names) << "a refusal leaves nothing";
    EXPECT_EQ(etcd_->revision(), revision) << "a refusal leaves nothing";
  }
  VolumeRecordStore records() { return {*client_, clock_, "v"}; }
  std::uint64_t deadline() { return clock_.boot_ns() + 10 * kSecond; }
  static Inode root_of(SimDisk& disk) {
    const auto catalog = Catalog::open(disk, catalog_options(kStore, 0));
    EXPECT_TRUE(catalog);
    return *(*catalog)->inode(kRootInode);
  }
  /// The store and etcd tell the same.
  void expect_whole(SimDisk& disk, const std::string& node) {
    const auto superblock = Engine::superblock(disk, kStore);
    const auto config = read_cluster_config(disk, kStore);
    const auto secret = read_volume_secret(disk, kStore + "/secret");
    ASSERT_TRUE(superblock && config && secret);
    EXPECT_EQ(config->node, node);
    EXPECT_EQ(superblock->incompatible, kIncompatibleCluster);
    const auto volume = records().confirm(*config, deadline());
    ASSERT_TRUE(volume) << describe(volume.error());
    EXPECT_EQ(volume->uuid, superblock->uuid);
    EXPECT_EQ(volume->segment_size_bytes, superblock->segment_size_bytes);
    EXPECT_EQ(volume->secret_check, make_secret_check(*secret, volume->uuid));
    const Inode root = root_of(disk);
    EXPECT_EQ(root.uid, volume->uid);
    EXPECT_EQ(root.gid, volume->gid);
    EXPECT_EQ(root.mtime, volume->created);
    EXPECT_TRUE(etcd_->has(etcd::LogKeys("v", 1).generation()));
  }
  void begin_life(const std::string& node) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = node;
    options.incarnation = 7;
    ASSERT_TRUE(EtcdLog::open(*client_, clock_, options));
  }

  SimClock clock_;
  std::unique_ptr<SimEtcd> etcd_;
  std::unique_ptr<etcd::EtcdClient> client_;
  SimRandomSource random_{1};
  std::unique_ptr<SimDisk> disk_ = new_disk();
  ClusterFormat cluster_ = cluster_of("a");
};

TEST_F(ClusterStore, ANewVolumeHasItsFirstNode) {
  cluster_.replicas = 3;
  const auto made = make();
  ASSERT_TRUE(made) << describe(made.error());
  expect_whole(*disk_, "a");
  const std::vector<std::string> files = {"ballast",  "catalog", "cluster",   "secret",
                                          "segments", "spare",   "superblock"};
  EXPECT_EQ(*disk_->list(kStore), files) << "no log of its own";
  const auto volume = records().volume(deadline());
  EXPECT_EQ(volume->replicas, 3u);
  EXPECT_EQ(volume->uid, 1000u);
  EXPECT_EQ(volume->gid, 100u);
  EXPECT_NE(volume->uuid, Uuid{});
  const auto config = read_cluster_config(*disk_, kStore);
  EXPECT_EQ(config->id, NodeId{1});
  EXPECT_EQ(config->endpoints, cluster_.config.endpoints);
  EXPECT_EQ(config->listen, "10.0.0.1:7420");
  const auto node = records().node("a", deadline());
  EXPECT_EQ(node->store, config->store);
  EXPECT_EQ(node->rack, "r");
  const auto volume_key = etcd_->range({"/kvsyncfs/", "/kvsyncfs0"});
  const std::string secret = *read_volume_secret(*disk_, kStore + "/secret");
  for (const auto& item : volume_key->items)
    EXPECT_EQ(item.value.find(encode_secret(secret).substr(0, 64)), std::string::npos) << item.key;
}

TEST_F(ClusterStore, TheUuidOfTheOptionsIsTheVolumes) {
  FormatOptions options = format_options();
  options.uuid = *parse_uuid("10111213-1415-4617-9819-1a1b1c1d1e1f");
  const auto made = format_cluster_store(*disk_, clock_, random_, *client_, options, cluster_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->uuid, options.uuid);
  expect_whole(*disk_, "a");
}

TEST_F(ClusterStore, NodesThatJoinGetDenseIdsAndTheSameBeginning) {
  const auto first = make();
  ASSERT_TRUE(first);
  clock_.advance(1000 * kSecond);
  std::vector<std::string> names = {"a"};
  for (const std::string node : {"c", "b"}) {
    const auto disk = new_disk();
    FormatOptions options = format_options();
    options.uid = options.gid = 0;
    options.size_bytes *= 2;
    const auto made =
        format_cluster_store(*disk, clock_, random_, *client_, options, joining(node));
    ASSERT_TRUE(made) << describe(made.error());
    EXPECT_EQ(made->uuid, first->uuid);
    EXPECT_EQ(made->size_bytes, 2 * first->size_bytes);
    expect_whole(*disk, node);
    names.push_back(node);
  }
  const auto nodes = records().nodes(deadline());
  ASSERT_TRUE(nodes);
  ASSERT_EQ(nodes->size(), 3u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ((*nodes)[i].name, names[i]);
    EXPECT_EQ((*nodes)[i].record.id.value, i + 1);
  }
}

TEST_F(ClusterStore, RefusalsNameWhatIsInTheWayAndChangeNothing) {
  expect_refused(
      *disk_,
      [&] {
        ClusterFormat join = cluster_;
        join.join = true;
        join.secret.assign(kVolumeSecretSize, 's');
        return join;
      }(),
      Code::kNotFound, "volume v");
  ASSERT_TRUE(make());
  const auto other = new_disk();
  expect_refused(*other, cluster_of("b"), Code::kExists, "volume v exists");
  ClusterFormat join = joining("b");
  join.secret[0] = static_cast<char>(join.secret[0] ^ 1);
  expect_refused(*other, join, Code::kAccess, "the secret is not that of volume v");
  expect_refused(*other, joining("a"), Code::kExists, "node a exists in volume v");
  join = joining("b");
  join.secret.pop_back();
  expect_refused(*other, join, Code::kInvalid, "secret");
  for (const char* name : {"", "a/b", "a b"}) {
    join = joining("b");
    join.config.node = name;
    expect_refused(*other, join, Code::kInvalid, std::string("'") + name + "'");
  }
  ClusterFormat more = cluster_of("b");
  more.config.volume = "w";
  more.replicas = kReplicasMax + 1;
  expect_refused(*other, more, Code::kInvalid, "replicas");
  more.replicas = 2;
  more.config.listen = "nowhere";
  expect_refused(*other, more, Code::kInvalid, "listen");
  ASSERT_TRUE(other->make_directory(kStore + "/mine"));
  expect_refused(*other, joining("b"), Code::kExists, "/mine");
}

TEST_F(ClusterStore, AStoreMustHaveRoomForTheVolumesSegments) {
  FormatOptions options = format_options();
  options.size_bytes = 4ull << 30;
  const auto large = std::make_unique<SimDisk>(std::uint64_t{1} << 40);
  ASSERT_TRUE(large->make_directory(kStore));
  ASSERT_TRUE(format_cluster_store(*large, clock_, random_, *client_, options, cluster_));
  ClusterFormat join = cluster_of("b");
  join.join = true;
  join.secret = *read_volume_secret(*large, kStore + "/secret");
  expect_refused(*disk_, join, Code::kInvalid, "too small");
}

TEST_F(ClusterStore, AnEtcdThatDoesNotAnswerIsNamedWithinFifteenSeconds) {
  etcd_->lose_quorum();
  const std::uint64_t begin_ns = clock_.boot_ns();
  expect_refused(*disk_, cluster_, Code::kTimeout, "etcd at h1:2379,h2:2379");
  EXPECT_LE(clock_.boot_ns() - begin_ns, 15 * kSecond);
}

TEST_F(ClusterStore, ALogWithoutAVolumeIsTakenOnlyIfItWasNeverUsed) {
  ASSERT_TRUE(format_etcd_log(*client_, clock_, "v", 1, {}));
  ASSERT_TRUE(make()) << "what a crash leaves";
  ASSERT_TRUE(format_etcd_log(*client_, clock_, "w", 1, {}));
  etcd::Txn append;
  append.success = {etcd::Put{etcd::LogKeys("w", 1).count(), {}}};
  ASSERT_TRUE(etcd_->carry_out(append));
  const auto other = new_disk();
  cluster_.config.volume = "w";
  const auto used = make(*other, cluster_);
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code, Code::kExists);
  EXPECT_NE(used.error().detail.find("volume w has no record"), std::string::npos);
}

TEST_F(ClusterStore, ForceTakesThePlaceOfAVolumeThatWasNeverMounted) {
  const auto first = make();
  ASSERT_TRUE(first);
  const ClusterConfig before = *read_cluster_config(*disk_, kStore);
  const auto second = new_disk();
  ASSERT_TRUE(make(*second, joining("b")));
  const auto other = new_disk();
  cluster_.force = true;
  const auto made = make(*other, cluster_);
  ASSERT_TRUE(made) << describe(made.error());
  EXPECT_NE(made->uuid, first->uuid);
  expect_whole(*other, "a");
  EXPECT_EQ(records().nodes(deadline())->size(), 1u);
  EXPECT_EQ(records().confirm(before, deadline()).error().code, Code::kStale);

  begin_life("a");
  const auto third = new_disk();
  expect_refused(*third, cluster_, Code::kBusy, "node a of volume v was mounted once");
}

TEST_F(ClusterStore, ForceGivesANodeThatWasNeverMountedAnotherStore) {
  ASSERT_TRUE(make());
  const auto lost = new_disk();
  ASSERT_TRUE(make(*lost, joining("b")));
  const auto other = new_disk();
  ClusterFormat again = joining("b");
  again.force = true;
  ASSERT_TRUE(make(*other, again));
  expect_whole(*other, "b");
  EXPECT_EQ(read_cluster_config(*other, kStore)->id, NodeId{2}) << "its id stays";
  const auto stale = records().confirm(*read_cluster_config(*lost, kStore), deadline());
  EXPECT_EQ(stale.error().code, Code::kStale) << "there are not two of one node";

  begin_life("b");
  const auto third = new_disk();
  expect_refused(*third, again, Code::kBusy, "node b of volume v was mounted once");
}

TEST_F(ClusterStore, WhatLooksUnfinishedButWasMountedIsLeftAlone) {
  ASSERT_TRUE(make());
  ClusterConfig unfinished = *read_cluster_config(*disk_, kStore);
  unfinished.id = {};
  const auto file = disk_->open(kStore + "/cluster.new", OpenMode::kCreateNew);
  ASSERT_TRUE((*file)->write_at(0, as_bytes(encode(unfinished))));
  clear(*disk_);
  begin_life("a");
  expect_refused(*disk_, cluster_, Code::kBusy, "node a of volume v was mounted once");
}

TEST_F(ClusterStore, NodesThatJoinAtOnceGetDifferentIds) {
  ASSERT_TRUE(make());
  const auto b = new_disk(), c = new_disk();
  const ClusterFormat joining_b = joining("b"), joining_c = joining("c");
  bool inside = false;
  int calls = 0;
  etcd_->meanwhile = [&] {
    // Between the look at the count and the transaction that follows it.
    if (inside || !*b->exists(kStore + "/catalog") || ++calls < 2) return;
    inside = true;
    EXPECT_TRUE(make(*c, joining_c));
  };
  ASSERT_TRUE(make(*b, joining_b));
  ASSERT_TRUE(inside);
  expect_whole(*b, "b");
  expect_whole(*c, "c");
  EXPECT_NE(read_cluster_config(*b, kStore)->id, read_cluster_config(*c, kStore)->id);
  EXPECT_EQ(records().nodes(deadline())->size(), 3u);
}

TEST_F(ClusterStore, AVolumeIsMadeOnceWhoeverIsFirst) {
  const auto b = new_disk();
  bool inside = false;
  etcd_->meanwhile = [&] {
    if (inside || !*disk_->exists(kStore + "/catalog")) return;
    inside = true;
    EXPECT_TRUE(make(*b, cluster_of("b")));
  };
  const auto made = make();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kExists);
  expect_whole(*b, "b");
  clear(*disk_);
  EXPECT_TRUE(disk_->list(kStore)->empty());
}

/// After a crash at any change of the disk the same arguments make the store.
TEST_F(ClusterStore, NoCrashStandsInTheWayOfTheNextTry) {
  ASSERT_TRUE(make());
  const std::uint64_t begin = new_disk()->changes(), changes = disk_->changes() - begin;
  ASSERT_GT(changes, 20u);
  for (const bool join : {false, true}) {
    std::size_t resumed = 0;
    const std::uint64_t step = std::max<std::uint64_t>(1, changes / share_of(60));
    for (std::uint64_t n = 1; n <= changes; n += n + 15 > changes ? 1 : step) {
      new_etcd(n);
      ClusterFormat cluster = cluster_of("b");
      if (join) {
        disk_ = new_disk();
        ASSERT_TRUE(make());
        cluster = joining("b");
      }
      auto disk = new_disk();
      disk->stop_at(begin + n);
      const bool whole = make(*disk, cluster).has_value();
      const auto left = disk->after_crash(n);
      if (!Engine::superblock(*left, kStore)) {
        ASSERT_FALSE(whole);
        resumed += etcd_->has("/kvsyncfs/v/nodes/b") ? 1 : 0;
        clear(*left);
        const auto again = make(*left, cluster);
        ASSERT_TRUE(again) << "change " << n << ": " << describe(again.error());
      }
      expect_whole(*left, "b");
      EXPECT_EQ(read_cluster_config(*left, kStore)->id.value, join ? 2u : 1u) << "change " << n;
    }
    EXPECT_GT(resumed, 0u) << "some crash comes after the node was in etcd";
  }
}

/// Whatever etcd loses, repeats or does late, the same arguments make the store in the end.
TEST_F(ClusterStore, NoFaultOfEtcdStandsInTheWayOfTheNextTry) {
  const Seeds seeds = seeds_from(1, share_of(60));
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    new_etcd(seed);
    const auto try_all = [&](SimDisk& disk, const ClusterFormat& cluster) {
      etcd_->faults.lost_request = etcd_->faults.lost_answer = 6;
      etcd_->faults.late_request = etcd_->faults.no_space = 6;
      Result<Superblock> made = Code::kTimeout;
      for (int tries = 0; tries < 100 && !made; ++tries) {
        clear(disk);
        made = make(disk, cluster);
        clock_.advance(kSecond);
      }
      ASSERT_TRUE(made) << "seed " << seed << ": " << describe(made.error());
      etcd_->faults = {};
      clock_.advance(100 * kSecond);  // what is late comes
      etcd_->tick();
      expect_whole(disk, cluster.config.node);
    };
    disk_ = new_disk();
    try_all(*disk_, cluster_of("a"));
    const auto disk = new_disk();
    try_all(*disk, joining("b"));
    const auto nodes = records().nodes(deadline());
    ASSERT_TRUE(nodes);
    ASSERT_EQ(nodes->size(), 2u);
    EXPECT_EQ((*nodes)[1].record.id.value, 2u);
    expect_whole(*disk_, "a");
  }
}

}  // namespace
}  // namespace kvsyncfs
