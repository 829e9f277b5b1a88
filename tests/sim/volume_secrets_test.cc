// Another secret for a volume, over simulated disks and a simulated etcd.
#include "engine/volume_secrets.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "engine/cluster_secret.h"
#include "engine/cluster_store.h"
#include "engine/net/auth.h"
#include "engine/node_generation.h"
#include "tests/lib/state_table.h"
#include "tests/sim/engine_world.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

const std::string kStore = "/store";
const std::string kFile = kStore + "/secret", kNextFile = kStore + "/secret.next";

void write(Disk& disk, const std::string& path, const std::string& secret) {
  const auto file = disk.open(path, OpenMode::kCreateOrOpen).value();
  ASSERT_TRUE(file->write_at(0, as_bytes(encode_secret(secret))));
  ASSERT_TRUE(file->sync() && disk.sync_directory(kStore));
}

/// One store, and a record that the test changes as etcd's would.
class SecretMachine {
 public:
  SecretMachine() {
    EXPECT_TRUE(disk_.make_directory(kStore));
    write(disk_, kFile, secret("old"));
    record_.secret_check = check("old");
  }
  void run(StateRow& row) {
    if (row.state != "settled") fire("begin");
    if (row.state == "both") fire("copy");
    if (row.state == "out") fire("finish");
    EXPECT_EQ(look(nullptr), row.state);
    fire(row.event);
    row.next = look(&row.result);
    EXPECT_EQ(look(nullptr), row.next) << "the second look";
  }

 private:
  static std::string secret(const std::string& name) {
    std::string text = name;
    text.resize(kVolumeSecretSize, '.');
    return text;
  }
  Proof check(const std::string& name) const { return make_secret_check(secret(name), {}); }

  void fire(const std::string& event) {
    if (event == "begin") begin();
    if (event == "cancel") record_.next_secret_check.reset();
    if (event == "copy") copy();
    if (event == "finish") finish();
  }
  void begin() {
    coming_ = ++begun_ == 1 ? "next" : "another";
    record_.next_secret_check = check(coming_);
  }
  void copy() {
    if (look(nullptr) == "out")
      write(disk_, kFile, secret(current_));
    else
      write(disk_, kNextFile, secret(record_.next_secret_check ? coming_ : "nothing"));
  }
  void finish() {
    if (!record_.next_secret_check) begin();
    record_.secret_check = *record_.next_secret_check;
    record_.next_secret_check.reset();
    current_ = coming_;
  }
  std::string look(std::string* names) {
    const auto known = settle_secrets(disk_, kStore, {}, record_);
    if (names != nullptr) *names = known ? names_of(known->secrets) : "-";
    if (!known) return known.error().code == Code::kAccess ? "out" : describe(known.error());
    EXPECT_FALSE(known->is_over);
    return known->lacks_next ? "lacking" : known->secrets.size() == 2 ? "both" : "settled";
  }
  static std::string names_of(const std::vector<std::string>& secrets) {
    std::string text;
    for (const std::string& each : secrets)
      text += (text.empty() ? "" : ", ") + each.substr(0, each.find('.'));
    return text;
  }

  SimDisk disk_;
  VolumeRecord record_;
  int begun_ = 0;
  std::string coming_, current_ = "old";
};

TEST(VolumeSecrets, EveryRowOfSecretIsAsItIsWritten) {
  const auto table = load_state_table(KVSYNCFS_PROTOCOL_PAGE, "Secret");
  EXPECT_FALSE(table.empty());
  const StateMachine machine{{"settled", "lacking", "both", "out"},
                             {"begin", "copy", "finish", "cancel"},
                             [](StateRow& row) { SecretMachine().run(row); }};
  EXPECT_EQ(compare(table, machine), std::vector<std::string>{});
}

class SecretChangeTest : public ::testing::Test {
 protected:
  struct Node {
    std::unique_ptr<SimDisk> disk = std::make_unique<SimDisk>();
    std::vector<std::string> accepted;
    std::vector<std::string> warned;
    std::unique_ptr<SecretKeeper> keeper;
  };

  SecretChangeTest() {
    for (const char* name : {"a", "b"}) add(name);
    old_ = read("a", kFile);
  }
  void add(const std::string& name) {
    Node& node = nodes_[name];
    ASSERT_TRUE(node.disk->make_directory(kStore) && node.disk->sync_directory("/"));
    ClusterFormat cluster;
    cluster.config.volume = "v";
    cluster.config.endpoints = {"h1:2379"};
    cluster.config.node = name;
    cluster.config.listen = "10.0.0.1:7420";
    cluster.join = name != "a";
    if (cluster.join) cluster.secret = read("a", kFile);
    FormatOptions options;
    options.store = kStore;
    options.size_bytes = kStoreSizeMin;
    const auto made = format_cluster_store(*node.disk, clock_, random_, *client_, options, cluster);
    ASSERT_TRUE(made) << describe(made.error());
    node.accepted = {read("a", kFile)};
    node.keeper = std::make_unique<SecretKeeper>(
        *node.disk, clock_, *client_, kStore, read_cluster_config(*node.disk, kStore).value(),
        node.accepted, [&node](const auto& secrets) { node.accepted = secrets; },
        [&node](std::string_view line) { node.warned.emplace_back(line); });
  }
  std::string read(const std::string& name, const std::string& path) {
    const auto secret = read_volume_secret(*nodes_[name].disk, path);
    return secret ? *secret : describe(secret.error());
  }
  void look() {
    for (auto& [name, node] : nodes_) node.keeper->step();
  }
  Result<SecretChange> begin(const std::string& name) {
    return begin_secret_change(*nodes_[name].disk, clock_, random_, *client_, kStore);
  }
  Result<SecretChange> finish(const std::string& name) {
    return finish_secret_change(*nodes_[name].disk, clock_, *client_, kStore);
  }
  Status cancel(const std::string& name) {
    return cancel_secret_change(*nodes_[name].disk, clock_, *client_, kStore);
  }
  using Secrets = std::vector<std::string>;

  SimClock clock_;
  SimEtcd etcd_{clock_, 1};
  std::unique_ptr<etcd::EtcdClient> client_ = etcd_.client();
  SimRandomSource random_{1};
  std::map<std::string, Node> nodes_;
  std::string old_;
};

TEST_F(SecretChangeTest, NodesAcceptBothUntilTheEndAndThenTheNewOneOnly) {
  ASSERT_TRUE(begin("a"));
  const std::string next = read("a", kNextFile);
  EXPECT_NE(next, old_);
  look();
  EXPECT_EQ(nodes_["a"].accepted, (Secrets{next, old_}));
  EXPECT_EQ(nodes_["b"].accepted, (Secrets{old_}));
  EXPECT_EQ(nodes_["b"].warned.size(), 1u);
  look();
  EXPECT_EQ(nodes_["b"].warned.size(), 1u) << "told once";
  write(*nodes_["b"].disk, kNextFile, next);
  look();
  EXPECT_EQ(nodes_["b"].accepted, (Secrets{next, old_}));
  const auto told = begin("b");
  ASSERT_TRUE(told) << describe(told.error());
  for (const auto& node : told->nodes) EXPECT_TRUE(node.has_next) << node.name;
  ASSERT_TRUE(finish("b"));
  look();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(nodes_[name].accepted, (Secrets{next})) << name;
    EXPECT_EQ(read(name, kFile), next) << name;
    EXPECT_FALSE(nodes_[name].disk->exists(kNextFile).value()) << name;
  }
  EXPECT_EQ(finish("a").error().code, Code::kNotFound) << "there is no change any more";
}

TEST_F(SecretChangeTest, OneThatIsCancelledLeavesTheOldOneAndAnotherBeginsWithAnother) {
  ASSERT_TRUE(begin("a"));
  const std::string next = read("a", kNextFile);
  EXPECT_EQ(begin("b").error().code, Code::kNotFound) << "the store has not got it";
  EXPECT_EQ(finish("b").error().code, Code::kNotFound);
  ASSERT_TRUE(begin("a")) << "goes on";
  EXPECT_EQ(read("a", kNextFile), next);
  ASSERT_TRUE(cancel("b"));
  EXPECT_EQ(cancel("b").error().code, Code::kNotFound);
  look();
  for (const char* name : {"a", "b"}) EXPECT_EQ(nodes_[name].accepted, (Secrets{old_}));
  ASSERT_TRUE(begin("a"));
  EXPECT_NE(read("a", kNextFile), next);
}

TEST_F(SecretChangeTest, AnEtcdThatWasPutBackIntoTheChangeFindsNodesThatKnowTheNewOne) {
  ASSERT_TRUE(begin("a"));
  const std::string next = read("a", kNextFile);
  write(*nodes_["b"].disk, kNextFile, next);
  look();
  const auto backup = etcd_.backup();
  ASSERT_TRUE(finish("a"));
  look();
  etcd_.restore(backup);
  look();
  EXPECT_EQ(nodes_["a"].accepted, (Secrets{next}));
  ASSERT_TRUE(finish("a"));
  look();
  EXPECT_EQ(nodes_["b"].accepted, (Secrets{next}));
}

TEST_F(SecretChangeTest, ANodeWithoutTheNewOneIsNoNodeUntilItGetsIt) {
  ASSERT_TRUE(begin("a"));
  const std::string next = read("a", kNextFile);
  look();
  ASSERT_TRUE(finish("a")) << "b is not up";
  look();
  EXPECT_EQ(nodes_["b"].accepted, (Secrets{old_})) << "nobody else takes it";
  ASSERT_EQ(nodes_["b"].warned.size(), 2u);
  EXPECT_NE(nodes_["b"].warned.back().find("not the secret of volume v"), std::string::npos);
  write(*nodes_["b"].disk, kFile, next);
  look();
  EXPECT_EQ(nodes_["b"].accepted, (Secrets{next}));
}

}  // namespace
}  // namespace kvsyncfs
