// Bounds inside the engine that a history of common calls does not meet.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/sim/engine_world.h"

namespace kvsyncfs {
namespace {

/// Every second byte of a file: each is an extent of its own, and one log entry of them all would
/// be larger than the log takes. They come back after a crash and a recovery.
TEST(LimitsSim, FlushOfMoreExtentsThanOneLogEntryHolds) {
  constexpr std::uint64_t kBytes = 150'000;
  const auto disk = EngineWorld::new_store();
  SimClock clock;
  SimRandomSource random(1);
  EngineOptions options;
  options.store = EngineWorld::kStore;
  auto engine = Engine::open(*disk, clock, random, options);
  ASSERT_TRUE(engine) << describe(engine.error());
  NewNode node;
  node.mode = 0100644;
  const auto file = (*engine)->create(kRootInode, "f", node);
  ASSERT_TRUE(file) << describe(file.error());
  for (std::uint64_t i = 0; i < kBytes; ++i) {
    const auto byte = static_cast<std::byte>(1 + i % 250);
    ASSERT_TRUE((*engine)->write(file->inode, 2 * i, {&byte, 1}));
  }
  const Status synced = (*engine)->sync(file->inode);
  ASSERT_TRUE(synced) << describe(synced.error());
  engine->reset();
  disk->crash(1);

  engine = Engine::open(*disk, clock, random, options);
  ASSERT_TRUE(engine) << describe(engine.error());
  std::string found(2 * kBytes, 'x');
  const auto count = (*engine)->read(file->inode, 0, bytes_of(found));
  ASSERT_TRUE(count) << describe(count.error());
  EXPECT_EQ(*count, 2 * kBytes - 1);
  for (std::uint64_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(found[2 * i], static_cast<char>(1 + i % 250)) << "byte " << 2 * i;
  EXPECT_TRUE((*engine)->close());
}

}  // namespace
}  // namespace kvsyncfs
