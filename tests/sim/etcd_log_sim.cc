// Seeded runs of a cluster's log: nodes that append, follow, trim, freeze, crash and come back over
// an etcd that loses, delays, compacts and is put back. KVSYNCFS_SIM_SEEDS and KVSYNCFS_SIM_SEED
// choose how many and which.
#include <gtest/gtest.h>

#include "tests/sim/etcd_world.h"
#include "tests/sim/seeds.h"

namespace kvsyncfs {
namespace {

using ::testing::Test;

constexpr std::uint64_t kSeeds = 1500;
constexpr int kSteps = 600;

TEST(EtcdLogSim, AllNodesApplyOneOrderUnderEveryFault) {
  const Seeds seeds = seeds_from(1, share_of(kSeeds));
  const std::uint64_t count = seeds.end - seeds.begin;
  std::uint64_t confirmed = 0, rejoined = 0;
  EtcdLogCounters totals;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    EtcdWorld world(seed, 2 + seed % 3);
    world.run(kSteps);
    world.heal();
    ASSERT_EQ(world.problem(), "") << "seed " << seed;
    confirmed += world.confirmed_count();
    rejoined += world.rejoined_count();
    totals.repeats += world.counters().repeats;
    totals.resyncs += world.counters().resyncs;
    totals.withheld += world.counters().withheld;
  }
  if (count < 100) return;
  EXPECT_GT(confirmed, 20 * count);  // the faults leave room for work
  EXPECT_GT(rejoined, count / 4);
  EXPECT_GT(totals.repeats, count);
  EXPECT_GT(totals.resyncs, count);
  EXPECT_GT(totals.withheld, 0u);
}

/// Part of the nodes are ahead of what etcd is put back to; others may go on and reach that place.
void run_restore(std::uint64_t seed) {
  EtcdWorld world(seed + 1'000'000, 3);
  world.run(150);
  world.take_backup();
  world.run(150);
  world.restore();
  if (seed % 2 == 0) world.run(200);
  world.etcd().faults = {};
  world.etcd().meanwhile = [] {};
  world.etcd().elect_leader();
  world.expect_ahead_nodes_refuse();
  ASSERT_EQ(world.problem(), "") << "seed " << seed;
}

TEST(EtcdLogSim, NodesAheadOfARestoredEtcdRefuseIt) {
  const Seeds seeds = seeds_from(1, share_of(kSeeds));
  const std::uint64_t end = seeds.begin + (seeds.end - seeds.begin) / 5 + 1;
  for (std::uint64_t seed = seeds.begin; seed < end && !Test::HasFailure(); ++seed)
    run_restore(seed);
}

TEST(EtcdLogSim, RestoresThatOnceWentWrongAreRefused) {
  for (const std::uint64_t seed : {28, 246, 497, 640, 1840}) run_restore(seed);
}

}  // namespace
}  // namespace kvsyncfs
