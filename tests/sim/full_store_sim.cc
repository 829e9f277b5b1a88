// A nearly full store: writers are refused only where live bytes do not fit, every step of the
// cleaner may be the last of a life, and a full store comes up again.
//
// KVSYNCFS_SIM_SEEDS=n runs n seeds of the random crashes; KVSYNCFS_SIM_SEED=s begins with seed s.
#include <gtest/gtest.h>

#include <memory>

#include "tests/sim/full_store.h"
#include "tests/sim/seeds.h"

namespace kvsyncfs {
namespace {

/// A closed store that is full to `percent`, and was under overwrites for a while.
std::unique_ptr<FullStore> worn_store(unsigned percent, std::uint64_t seed) {
  auto store = std::make_unique<FullStore>(EngineWorld::new_store(), seed);
  if (store->open() && store->fill(percent) && store->overwrite(2000)) store->close();
  EXPECT_EQ(store->problem(), "");
  return store;
}

std::unique_ptr<FullStore> copy_of_90_percent(std::uint64_t seed) {
  static const auto made = worn_store(90, 1);
  return made->copy(seed);
}

TEST(FullStoreSim, RandomOverwritesAreNeverRefused) {
  for (const unsigned percent : {90u, 97u, 100u}) {
    SCOPED_TRACE(percent);
    FullStore store(EngineWorld::new_store(), percent);
    ASSERT_TRUE(store.open() && store.fill(percent)) << store.problem();
    // Three times what the store holds.
    ASSERT_TRUE(store.overwrite(8000) && store.verify()) << store.problem();
    EXPECT_GT(store.engine().counters().cleaned_segments, 0u);
    ASSERT_TRUE(store.close() && store.open()) << store.problem();
    ASSERT_TRUE(store.empty()) << store.problem();
  }
}

TEST(FullStoreSim, NewBytesAreRefusedOnlyWhenThereIsNoRoom) {
  FullStore store(EngineWorld::new_store(), 1);
  ASSERT_TRUE(store.open() && store.fill_up()) << store.problem();
  EXPECT_LT(store.engine().space()->free_bytes, 4 * kPageSize);
  ASSERT_TRUE(store.overwrite(3000) && store.close() && store.open()) << store.problem();
  ASSERT_TRUE(store.empty()) << store.problem();
}

TEST(FullStoreSim, ReservedRangeTakesItsBytesInAFullStore) {
  FullStore store(EngineWorld::new_store(), 1);
  ASSERT_TRUE(store.open() && store.fill(50)) << store.problem();
  Engine& engine = store.engine();
  NewNode node;
  node.mode = 0100644;
  const auto made = engine.create(kRootInode, "reserved", node);
  ASSERT_TRUE(made);
  constexpr std::uint64_t kSize = 2 << 20;
  ASSERT_TRUE(engine.allocate(made->inode, 0, kSize, AllocateMode::kReserve));
  ASSERT_TRUE(store.fill_up()) << store.problem();
  const std::string bytes(64 << 10, 'r');
  for (std::uint64_t at = 0; at < kSize; at += bytes.size())
    ASSERT_TRUE(engine.write(made->inode, at, as_bytes(bytes))) << at;
  ASSERT_TRUE(engine.sync_all());
}

/// Stops at every change of the disk while the cleaner takes a few segments.
TEST(FullStoreSim, EveryStepOfTheCleaner) {
  const auto changes_until = [](FullStore& store, std::uint64_t cleaned) {
    while (store.problem().empty() && store.engine().counters().cleaned_segments < cleaned)
      if (!store.overwrite(10)) break;
    return store.disk().changes();
  };
  const auto whole = copy_of_90_percent(7);
  const std::uint64_t start = whole->disk().changes();
  ASSERT_TRUE(whole->open()) << whole->problem();
  const std::uint64_t begin = changes_until(*whole, 2) - start;
  const std::uint64_t end = changes_until(*whole, 4) - start;
  ASSERT_EQ(whole->problem(), "");
  for (std::uint64_t stop = begin; stop <= end; stop += share_of(10) == 10 ? 1 : 7) {
    for (const bool power : {true, false}) {
      SCOPED_TRACE("stop " + std::to_string(stop) + (power ? " crash" : " kill"));
      const auto store = copy_of_90_percent(7);
      store->disk().stop_at(start + stop);
      if (store->open()) changes_until(*store, 5);
      ASSERT_EQ(store->problem(), "");
      ASSERT_TRUE(store->disk().stopped());
      if (power)
        store->crash(stop);
      else
        store->kill();
      ASSERT_TRUE(store->open()) << store->problem();
      ASSERT_TRUE(store->overwrite(100) && store->verify()) << store->problem();
    }
  }
}

void run_full_lives(std::uint64_t seed) {
  SimRandom random(seed);
  const auto store = copy_of_90_percent(seed);
  const std::uint64_t lives = 2 + random.below(3);
  for (std::uint64_t life = 0; life < lives; ++life) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " life " + std::to_string(life));
    if (!random.one_in(4))
      store->disk().stop_at(store->disk().changes() + 1 +
                            random.below(random.one_in(3) ? 60 : 900));
    if (store->open() && (random.one_in(2) || store->fill_up())) store->overwrite(800);
    ASSERT_EQ(store->problem(), "");
    if (random.one_in(3))
      store->kill();
    else
      store->crash(random.below(1'000'000));
  }
  SCOPED_TRACE("seed " + std::to_string(seed) + ", last life");
  ASSERT_TRUE(store->open() && store->overwrite(50) && store->verify()) << store->problem();
  Engine::CheckOptions options;
  options.scrub = true;
  std::string text;
  options.report = [&](const std::string& line) { text += line + "; "; };
  const auto report = store->engine().check(options);
  ASSERT_TRUE(report && report->problems == 0) << text;
  ASSERT_TRUE(store->empty()) << store->problem();
}

TEST(FullStoreSim, RandomCrashesOfAFullStore) {
  const Seeds seeds = seeds_from(1, share_of(30));
  for (std::uint64_t seed = seeds.begin; seed < seeds.end && !HasFailure(); ++seed)
    run_full_lives(seed);
}

}  // namespace
}  // namespace kvsyncfs
