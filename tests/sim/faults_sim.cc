// A disk that fails while the engine runs: what was confirmed stays, nothing is confirmed that is
// not so, and no read has wrong bytes.
//
// KVSYNCFS_SIM_SEEDS=n runs n seeds of the long histories; KVSYNCFS_SIM_SEED=s begins with seed s.
#include <gtest/gtest.h>

#include "tests/sim/engine_world.h"
#include "tests/sim/seeds.h"

namespace kvsyncfs {
namespace {

constexpr int kShortSteps = 40, kLongSteps = 120, kStepsAfter = 12;

/// The power fails after a fault, and the next life, without faults, finds what the model allows.
void end_after_fault(EngineWorld& world, std::uint64_t seed) {
  world.crash(seed);
  world.allow(Faults::kNone);
  if (world.open()) world.probe();
}

/// Change `at` of a short history fails, 0: none does. Returns the count of changes.
std::uint64_t run_short(std::uint64_t seed, std::uint64_t at) {
  SCOPED_TRACE("seed " + std::to_string(seed) + " change " + std::to_string(at));
  EngineWorld world(EngineWorld::new_store(), seed, Workload::kWide);
  const std::uint64_t before = world.disk().changes();
  world.allow(Faults::kIo);
  if (at != 0) world.disk().fail_change(before + at, Code::kIo);
  if (world.open()) {
    world.run(kShortSteps);
    if (world.failed()) world.run(kStepsAfter);
  }
  EXPECT_EQ(world.problem(), "");
  const std::uint64_t changes = world.disk().changes() - before;
  end_after_fault(world, seed + at);
  EXPECT_EQ(world.problem(), "") << "after it";
  return changes;
}

TEST(FaultsSim, EveryChangeOfShortHistoriesFailsOnce) {
  for (std::uint64_t seed = 0; seed < share_of(8); ++seed) {
    const std::uint64_t changes = run_short(seed, 0);
    for (std::uint64_t at = 1; at <= changes && !HasFailure(); ++at) run_short(seed, at);
  }
}

/// Three lives with a few faults each.
void run_lives(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SimRandom random(seed + 2'000'000);
  EngineWorld world(EngineWorld::new_store(), seed, Workload::kWide);
  for (std::uint64_t life = 0; life < 3; ++life) {
    world.allow(Faults::kIo);
    const std::uint64_t faults = 1 + random.below(3);
    for (std::uint64_t i = 0; i < faults; ++i) {
      if (random.one_in(4))
        world.disk().fail_read(1 + random.below(200));
      else
        world.disk().fail_change(world.disk().changes() + 1 + random.below(400), Code::kIo);
    }
    if (world.open()) {
      world.run(kLongSteps);
      if (world.failed()) world.run(kStepsAfter);
    }
    ASSERT_EQ(world.problem(), "") << "life " << life;
    end_after_fault(world, seed + life);
    ASSERT_EQ(world.problem(), "") << "after life " << life;
    world.kill();
  }
}

TEST(FaultsSim, RandomFaultsOfLongHistories) {
  const Seeds seeds = seeds_from(1, share_of(40));
  for (std::uint64_t seed = seeds.begin; seed < seeds.end && !HasFailure(); ++seed) run_lives(seed);
}

/// A trim gave several files of the log new names, and the power cut kept some of them: the log had
/// a gap.
TEST(FaultsSim, CutBetweenTheNamesOfATrim) { run_lives(7); }

}  // namespace
}  // namespace kvsyncfs
