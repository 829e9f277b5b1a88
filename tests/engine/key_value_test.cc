// The key-value face while others read and change the same keys: a value is there whole or not.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/lib/gate.h"
#include "tests/lib/memory_engine.h"

namespace kvsyncfs {
namespace {

class KeyValue : public MemoryEngine {};

TEST_F(KeyValue, NewKeyIsNotThereBeforeItsValue) {
  const std::string value(10'000, 'v');
  Gate gate(DiskOperation::kWrite, "segments/");
  gate.hold(disk_);
  std::thread writer([&] { EXPECT_TRUE(engine_->put("a/key", as_bytes(value))); });
  gate.wait_for_one();
  EXPECT_EQ(engine_->get("a/key").error().code, Code::kNotFound);
  EXPECT_EQ(engine_->list_keys("", 10).value(), std::vector<std::string>{});
  gate.let_go();
  writer.join();
  EXPECT_EQ(engine_->get("a/key").value(), value);
}

TEST_F(KeyValue, PutOfAKeyThatAnotherOneMakesReplacesIt) {
  Gate gate(DiskOperation::kWrite, "segments/");
  gate.hold(disk_);
  std::thread writer([&] { EXPECT_TRUE(engine_->put("key", as_bytes("of the first"))); });
  gate.wait_for_one();
  NewNode node;
  node.mode = 0100600;
  const auto made = engine_->create(kRootInode, "key", node);
  EXPECT_TRUE(made);
  gate.let_go();
  writer.join();
  EXPECT_EQ(engine_->get("key").value(), "of the first");
  EXPECT_EQ(engine_->lookup(kRootInode, "key")->inode, made->inode);
}

TEST_F(KeyValue, ReaderSeesOneWholeValueWhileTheyChange) {
  const std::string values[] = {std::string(10, 'a'), std::string(9000, 'b')};
  ASSERT_TRUE(engine_->put("key", as_bytes(values[0])));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 1; i < 3000; ++i) ASSERT_TRUE(engine_->put("key", as_bytes(values[i % 2])));
    done = true;
  });
  int torn = 0;
  while (!done) {
    const auto value = engine_->get("key");
    if (!value || (*value != values[0] && *value != values[1])) ++torn;
  }
  writer.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace kvsyncfs
