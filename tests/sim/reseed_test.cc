// A log that begins anew, over simulated disks and a simulated etcd that loses its data or is put
// back: who may begin it, who follows, and that no crash and no fault of etcd leaves a third state.
#include "tests/sim/reseed_fixture.h"

namespace kvsyncfs {
namespace {

TEST_F(ReseedTest, AfterTheLossOfEtcdTheVolumeGoesOnWithOneCatalogAndAllItsNodes) {
  bring_to("a", 500);
  bring_to("b", 700);
  const VolumeRecord before = volume().volume(deadline()).value();
  new_etcd();
  EXPECT_EQ(mount("b").error().code, Code::kNotFound);
  const auto done = reseed("b");
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_TRUE(done->is_begun);
  EXPECT_EQ(done->position, Position{700});
  EXPECT_EQ(done->generation, 2u);
  EXPECT_EQ(volume().volume(deadline()).value(), before);
  for (const char* name : {"b", "a", "c"}) {
    const auto followed = mount(name);
    ASSERT_TRUE(followed) << describe(followed.error());
    EXPECT_EQ(followed->has_catalog, name == std::string("b"));
    EXPECT_TRUE(volume().confirm(nodes_[name].config, deadline()));
  }
  const LogInEtcd log = logs().read(deadline()).value();
  EXPECT_EQ(position_of("b"), log.base);
  EXPECT_GE(log.base, Position{kPositionsPerGeneration}) << "no position comes twice";
  add("d");
  EXPECT_EQ(nodes_["d"].config.id, NodeId{4}) << "no id is given twice";
}

TEST_F(ReseedTest, NoSessionOfTheFormerLogIsWaitedFor) {
  {
    Disk& disk = *nodes_["a"].disk;
    auto catalog = Catalog::open(disk, catalog_of(disk));
    ASSERT_TRUE(catalog);
    Transaction joins;
    for (const NodeId node : {NodeId{1}, NodeId{2}, NodeId{9}})
      joins.commands.push_back(JoinCommand{node, {3}, 0, 5000});
    ASSERT_TRUE((*catalog)->apply({1}, joins));
    ASSERT_TRUE((*catalog)->begin_checkpoint() && (*catalog)->finish_checkpoint());
  }
  new_etcd();
  ASSERT_TRUE(reseed("a"));
  Disk& disk = *nodes_["a"].disk;
  auto catalog = Catalog::open(disk, catalog_of(disk));
  ASSERT_TRUE(catalog);
  ASSERT_EQ((*catalog)->sessions().size(), 3u);
  for (const auto& [node, session] : (*catalog)->sessions()) EXPECT_FALSE(session.lives());
  add("d");
  EXPECT_EQ(nodes_["d"].config.id, NodeId{10}) << "after all that the catalog knows";
}

TEST_F(ReseedTest, ALaterIncarnationFollowsInTheNewLog) {
  const auto first = next_incarnation(*client_, clock_, "v", "a", kFirstGeneration);
  ASSERT_TRUE(first);
  EtcdLogOptions options;
  options.volume = "v";
  options.node = "a";
  options.incarnation = first.value();
  ASSERT_TRUE(EtcdLog::open(*client_, clock_, options));
  new_etcd();
  ASSERT_TRUE(reseed("a"));
  options.generation = mount("a").value().generation;
  options.incarnation = next_incarnation(*client_, clock_, "v", "a", options.generation).value();
  EXPECT_GT(options.incarnation, *first);
  const auto log = EtcdLog::open(*client_, clock_, options);
  ASSERT_TRUE(log);
  const auto ignore = [](Position, std::string_view) {};
  EXPECT_TRUE((*log)->start(position_of("a"), ignore)) << "its catalog follows the new log";
}

TEST_F(ReseedTest, WhoHasMoreThanTheNewLogIsKeptOutUntouchedUntilToldSo) {
  bring_to("a", 500);
  bring_to("b", 700);
  new_etcd();
  ASSERT_TRUE(reseed("a"));
  expect_kept_out("b", "began anew with a catalog at position 500");
  expect_refused("b", {}, Code::kExists, "another node began with its catalog at position 500");
  ASSERT_TRUE(give_catalog_up(*nodes_["b"].disk, kStore));
  const auto followed = mount("b");
  ASSERT_TRUE(followed) << describe(followed.error());
  EXPECT_FALSE(followed->has_catalog);
}

TEST_F(ReseedTest, WhoHasMoreMayBeginInsteadAndTheFirstIsKeptOutThen) {
  bring_to("a", 500);
  bring_to("b", 700);
  new_etcd();
  ASSERT_TRUE(reseed("a"));
  const auto done = reseed("b", {false, true});
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_EQ(done->losses.size(), 1u);
  EXPECT_TRUE(mount("b").value().has_catalog);
  expect_kept_out("a", "began anew with a catalog at position 700");
  EXPECT_FALSE(mount("c").value().has_catalog);
}

TEST_F(ReseedTest, AnEtcdThatWasPutBackIsTakenOver) {
  const auto backup = etcd_->backup();
  bring_to("a", 500);
  etcd_->restore(backup);
  ASSERT_TRUE(reseed("a"));
  EXPECT_TRUE(mount("a").value().has_catalog);
  EXPECT_FALSE(etcd_->has(etcd::LogKeys("v", kFirstGeneration).trim())) << "the former log is gone";
  etcd_->restore(backup);
  expect_kept_out("a", "etcd went back");
  const auto again = reseed("a");
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(again->generation, 3u);
}

TEST_F(ReseedTest, AHealthyLogIsNotReplacedByMistake) {
  expect_refused("a", {}, Code::kExists, "mount the node instead");
  const auto look = reseed("a", {true, false});
  ASSERT_TRUE(look) << describe(look.error());
  EXPECT_EQ(look->losses.size(), 1u);
  EXPECT_FALSE(look->is_begun);
}

TEST_F(ReseedTest, NobodyIsCutOffWhoIsUpOrKnownToHaveMore) {
  bring_to("a", 500);
  EtcdLogOptions options;
  options.volume = "v";
  options.node = "b";
  options.incarnation = 1;
  {
    const auto log = EtcdLog::open(*client_, clock_, options);
    ASSERT_TRUE(log);
    ASSERT_TRUE(DurablePositions(*client_, "v", 1).announce("b", {1}, {600}, deadline()));
    expect_refused("a", {false, true}, Code::kBusy, "node b of volume v is up");
    EXPECT_TRUE(reseed("a", {true, false})) << "a look is free";
    ASSERT_TRUE((*log)->leave());
  }
  expect_refused("a", {}, Code::kExists, "what node b has up to position 600");
  EXPECT_TRUE(reseed("a", {false, true}));
}

TEST_F(ReseedTest, ALifeThatBeginsMeanwhileStopsIt) {
  bring_to("a", 500);
  const etcd::LogKeys keys("v", kFirstGeneration);
  int stopped = 0;
  for (int at = 1; at < 100; ++at) {
    SCOPED_TRACE(at);
    int calls = 0;
    etcd_->meanwhile = [&] {
      if (++calls != at) return;
      etcd::Txn life;
      life.success = {etcd::Put{keys.life("b"), "x"}, etcd::Put{keys.session("b", 1), "0"}};
      ASSERT_TRUE(etcd_->carry_out(life));
    };
    const auto done = reseed("a");
    etcd_->meanwhile = [] {};
    if (done) break;
    ++stopped;
    EXPECT_EQ(done.error().code, Code::kBusy) << describe(done.error());
    EXPECT_EQ(logs().read(deadline()).value().generation, kFirstGeneration);
    etcd::Txn over;
    over.success = {etcd::Delete{keys.session("b", 1), {}}};
    ASSERT_TRUE(etcd_->carry_out(over));
  }
  EXPECT_GT(stopped, 10) << "up to the transaction that begins it";
  EXPECT_NE(logs().read(deadline()).value().generation, kFirstGeneration);
}

/// The power goes at each step in turn; afterwards the node either follows the old log, and another
/// call begins the new one, or it follows that.
TEST_F(ReseedTest, ACrashAtAnyStepLeavesTheOldLogOrTheNewOne) {
  bring_to("b", 700);
  const auto backup = etcd_->backup();
  const std::unique_ptr<SimDisk> before = std::move(nodes_["b"].disk);
  bool was_new = false, was_cut = true;
  for (std::uint64_t step = 1; was_cut; ++step) {
    SCOPED_TRACE(step);
    ASSERT_LT(step, 500u);
    etcd_->restore(backup);
    std::unique_ptr<SimDisk>& disk = nodes_["b"].disk;
    disk = before->after_crash(0);
    disk->stop_at(disk->changes() + step);
    const auto done = reseed("b");
    was_cut = disk->stopped();
    EXPECT_EQ(done.has_value(), !was_cut);
    disk = disk->after_crash(step);
    const bool is_new = logs().read(deadline()).value().generation != kFirstGeneration;
    EXPECT_TRUE(is_new || !was_new) << "a later crash leaves no less";
    was_new = is_new;
    if (!is_new) {
      ASSERT_TRUE(reseed("b"));
    }
    const auto followed = mount("b");
    ASSERT_TRUE(followed) << describe(followed.error());
    EXPECT_TRUE(followed->has_catalog);
    EXPECT_EQ(position_of("b"), logs().read(deadline()).value().base);
  }
  EXPECT_TRUE(was_new);
}

TEST_F(ReseedTest, AnEtcdThatLosesAnswersEndsUpWithOneLog) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    new_etcd();
    etcd_->faults.lost_answer = etcd_->faults.lost_request = 16;
    etcd_->faults.late_request = 16;
    auto done = reseed("a");
    for (int tries = 0; !done && tries < 200; ++tries) done = reseed("a");
    ASSERT_TRUE(done) << describe(done.error());
    clock_.advance(100 * kSecond);
    etcd_->tick();
    etcd_->faults = {};
    const auto followed = mount("a");
    ASSERT_TRUE(followed) << describe(followed.error());
    EXPECT_TRUE(followed->has_catalog);
    EXPECT_EQ(position_of("a"), logs().read(deadline()).value().base);
  }
}

}  // namespace
}  // namespace kvsyncfs
