// The whole engine over a disk that loses and tears: after a power cut or a kill at every change of
// short histories, and at random ones of long histories of several lives, the store opens by
// itself, holds what the model allows, finds no fault in itself and goes on.
//
// KVSYNCFS_SIM_SEEDS=n runs n seeds of the long histories; KVSYNCFS_SIM_SEED=s begins with seed s.
#include <gtest/gtest.h>

#include <memory>

#include "tests/sim/engine_world.h"
#include "tests/sim/seeds.h"

namespace kvsyncfs {
namespace {

constexpr int kShortSteps = 40, kLongSteps = 120;

/// Change `stop` of the disk's coming life is the last; 0: all happen.
void stop_after(SimDisk& disk, std::uint64_t stop) {
  if (stop != 0) disk.stop_at(disk.changes() + stop);
}

struct Cut {
  std::uint64_t seed = 0, stop = 0;
  bool power = true;
  std::uint64_t crash = 0;
  Workload workload = Workload::kCommon;
};

std::string text(const Cut& cut) {
  return std::string(cut.workload == Workload::kWide ? "wide " : "") + "seed " +
         std::to_string(cut.seed) + " stop " + std::to_string(cut.stop) +
         (cut.power ? " crash " + std::to_string(cut.crash) : " kill");
}

/// One short history up to the cut, and what comes after it. Returns the count of changes.
std::uint64_t run_short(const Cut& cut) {
  EngineWorld world(EngineWorld::new_store(), cut.seed, cut.workload);
  const std::uint64_t before = world.disk().changes();
  stop_after(world.disk(), cut.stop);
  if (world.open()) world.run(kShortSteps);
  EXPECT_EQ(world.problem(), "") << text(cut);
  const std::uint64_t changes = world.disk().changes() - before;
  if (cut.power)
    world.crash(cut.seed * 1000 + cut.crash);
  else
    world.kill();
  if (world.open()) world.probe();
  EXPECT_EQ(world.problem(), "") << text(cut) << ", after it";
  return changes;
}

/// Lives that end one after the other, some while they recover.
void run_long(std::uint64_t seed, Workload workload) {
  SimRandom random(seed + 1'000'000);
  EngineWorld world(EngineWorld::new_store(), seed, workload);
  const std::uint64_t lives = 2 + random.below(3);
  for (std::uint64_t life = 0; life < lives; ++life) {
    if (!random.one_in(4)) stop_after(world.disk(), 1 + random.below(random.one_in(4) ? 40 : 600));
    if (world.open()) world.run(kLongSteps);
    ASSERT_EQ(world.problem(), "") << "seed " << seed << " life " << life;
    if (!world.disk().stopped() && random.one_in(3)) {
      world.close();
      ASSERT_EQ(world.problem(), "") << "seed " << seed << " close of life " << life;
    } else if (random.one_in(3)) {
      world.kill();
    } else {
      world.crash(random.below(1'000'000));
    }
  }
  if (world.open()) world.probe();
  ASSERT_EQ(world.problem(), "") << "seed " << seed << ", last life";
}

void run_every_point(const Seeds& seeds, Workload workload) {
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const std::uint64_t changes = run_short({seed, 0, true, 0, workload});
    for (std::uint64_t stop = 1; stop <= changes; ++stop) {
      run_short({seed, stop, true, stop % 7, workload});
      run_short({seed, stop, false, 0, workload});
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(EngineSim, EveryPointOfShortHistories) {
  run_every_point({0, share_of(6)}, Workload::kCommon);
}

TEST(EngineSim, EveryPointOfShortHistoriesOfAllCalls) {
  run_every_point({0, share_of(6)}, Workload::kWide);
}

/// CURRENT of the catalog was durable before the name of the MANIFEST that it names.
TEST(EngineSim, CutWhileTheCatalogChangesItsManifest) {
  for (std::uint64_t stop = 8; stop <= 24; ++stop) {  // seed 6 stop 15 crash 1 was the first
    for (std::uint64_t crash = 0; crash < 4; ++crash) run_short({6, stop, true, crash});
  }
}

/// The last record of the catalog's MANIFEST was torn in its middle (with luck: RocksDB's threads
/// are not the simulation's).
TEST(EngineSim, CutWhileTheManifestIsWritten) { run_long(103316, Workload::kCommon); }

TEST(EngineSim, RandomPointsOfLongHistories) {
  const Seeds seeds = seeds_from(1000, share_of(80));
  for (std::uint64_t seed = seeds.begin; seed < seeds.end && !HasFailure(); ++seed)
    run_long(seed, Workload::kCommon);
}

TEST(EngineSim, RandomPointsOfLongHistoriesOfAllCalls) {
  const Seeds seeds = seeds_from(1000, share_of(80));
  for (std::uint64_t seed = seeds.begin; seed < seeds.end && !HasFailure(); ++seed)
    run_long(seed, Workload::kWide);
}

TEST(EngineSim, CutFormatLeavesAWholeStoreOrNone) {
  SimDisk whole;
  ASSERT_TRUE(EngineWorld::format(whole));
  for (std::uint64_t stop = 1; stop <= whole.changes(); ++stop) {
    auto disk = std::make_unique<SimDisk>();
    disk->stop_at(stop);
    (void)EngineWorld::format(*disk);
    EngineWorld world(disk->after_crash(stop), stop);
    const auto superblock = Engine::superblock(world.disk(), EngineWorld::kStore);
    if (!superblock) continue;
    if (world.open()) world.probe();
    ASSERT_EQ(world.problem(), "") << "stop " << stop;
  }
}

}  // namespace
}  // namespace kvsyncfs
