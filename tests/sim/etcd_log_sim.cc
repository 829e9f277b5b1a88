// Seeded runs of a cluster's log: nodes that append, follow, trim, freeze, crash and come back over
// an etcd that loses, delays, compacts and is put back. KVSYNCFS_SIM_SEEDS and KVSYNCFS_SIM_SEED
// choose how many and which.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/etcd_world.h"

namespace kvsyncfs {
namespace {

using ::testing::Test;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

constexpr std::uint64_t kSeeds = 1500;
constexpr int kSteps = 600;

TEST(EtcdLogSim, AllNodesApplyOneOrderUnderEveryFault) {
  const std::uint64_t first = from_environment("KVSYNCFS_SIM_SEED", 1);
  const std::uint64_t count = from_environment("KVSYNCFS_SIM_SEEDS", kSeeds);
  std::uint64_t confirmed = 0;
  EtcdLogCounters totals;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    EtcdWorld world(seed, 2 + seed % 3);
    world.run(kSteps);
    world.heal();
    ASSERT_EQ(world.problem(), "") << "seed " << seed;
    confirmed += world.confirmed_count();
    totals.repeats += world.counters().repeats;
    totals.resyncs += world.counters().resyncs;
    totals.withheld += world.counters().withheld;
  }
  if (count < 100) return;
  EXPECT_GT(confirmed, 20 * count);  // the faults leave room for work
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
  const std::uint64_t first = from_environment("KVSYNCFS_SIM_SEED", 1);
  const std::uint64_t count = from_environment("KVSYNCFS_SIM_SEEDS", kSeeds) / 5 + 1;
  for (std::uint64_t seed = first; seed < first + count && !Test::HasFailure(); ++seed)
    run_restore(seed);
}

TEST(EtcdLogSim, RestoresThatOnceWentWrongAreRefused) {
  for (const std::uint64_t seed : {28, 246, 497, 640, 1840}) run_restore(seed);
}

}  // namespace
}  // namespace kvsyncfs
