// A lone node's engine on a small store in memory, as most tests of the whole engine begin. Thread:
// one, where the test does not say otherwise.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "engine/engine.h"
#include "engine/env/real.h"
#include "tests/lib/memory_disk.h"

namespace kvsyncfs {

class MemoryEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("store"));
    FormatOptions format;
    format.store = "store";
    format.uuid[0] = 1;
    format.size_bytes = kStoreSizeMin;
    ASSERT_TRUE(Engine::format(disk_, *clock_, format));
    EngineOptions options;
    options.store = "store";
    auto engine = Engine::open(disk_, *clock_, *random_, options);
    ASSERT_TRUE(engine) << describe(engine.error());
    engine_ = std::move(*engine);
  }

  Result<InodeId> create(const char* name) {
    NewNode node;
    node.mode = 0100644;
    KVSYNCFS_ASSIGN(const Entry entry, engine_->create(kRootInode, name, node));
    return entry.inode;
  }

  MemoryDisk disk_;
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  std::unique_ptr<Engine> engine_;
};

}  // namespace kvsyncfs
