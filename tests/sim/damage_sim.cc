// What users are told of bytes that the disk has changed.
#include <gtest/gtest.h>

#include <vector>

#include "engine/engine.h"
#include "tests/sim/engine_world.h"

namespace kvsyncfs {
namespace {

TEST(DamageSim, DamagedPageIsToldOnceWithFileAndSegment) {
  const auto disk = EngineWorld::new_store();
  SimClock clock;
  SimRandomSource random(1);
  std::vector<std::string> told;
  EngineOptions options;
  options.store = EngineWorld::kStore;
  options.warn = [&told](std::string_view line) { told.emplace_back(line); };
  auto engine = Engine::open(*disk, clock, random, options);
  ASSERT_TRUE(engine) << describe(engine.error());
  const std::string value(64 << 10, 'v');
  ASSERT_TRUE((*engine)->put("file", as_bytes(value)));
  const auto entry = (*engine)->lookup(kRootInode, "file");
  ASSERT_TRUE(entry);
  ASSERT_TRUE((*engine)->close());
  engine->reset();

  const std::string folder = std::string(EngineWorld::kStore) + "/segments";
  const auto names = disk->list(folder);
  ASSERT_TRUE(names);
  for (const std::string& name : *names)
    if (name.ends_with(".seg")) disk->flip(folder + "/" + name, 3 * kPageSize + 5);

  engine = Engine::open(*disk, clock, random, options);
  ASSERT_TRUE(engine) << describe(engine.error());
  std::string found(value.size(), 'x');
  for (int i = 0; i < 3; ++i) {
    const auto read = (*engine)->read(entry->inode, 0, bytes_of(found));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::kCorrupt);
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("inode " + std::to_string(entry->inode.value)), std::string::npos);
  EXPECT_NE(told[0].find("segment"), std::string::npos) << told[0];
  ASSERT_TRUE((*engine)->read(entry->inode, 0, bytes_of(found).first(kPageSize)));
}

}  // namespace
}  // namespace kvsyncfs
