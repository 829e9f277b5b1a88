// Waits of the engine for its own threads: while the disk stands still, who only waits for somebody
// else's write ends in kTimeout, by the clock and not by the time that goes by; and all goes on
// when the disk does.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "engine/engine.h"
#include "engine/env/real.h"
#include "tests/lib/gate.h"
#include "tests/lib/memory_disk.h"
#include "tests/lib/ticking_clock.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = TickingClock::kSecond;

class EngineWaits : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("store"));
    FormatOptions format;
    format.store = "store";
    format.uuid[0] = 1;
    format.size_bytes = kStoreSizeMin;
    ASSERT_TRUE(Engine::format(disk_, clock_, format));
    options_.store = "store";
    options_.write_buffer_bytes = 1 << 20;
    options_.timeout_ns = 5 * kSecond;
    auto engine = Engine::open(disk_, clock_, *random_, options_);
    ASSERT_TRUE(engine) << describe(engine.error());
    engine_ = std::move(*engine);
    file_ = create("file");
  }

  InodeId create(const std::string& name) {
    NewNode node;
    node.mode = 0100644;
    const auto made = engine_->create(kRootInode, name, node);
    EXPECT_TRUE(made);
    return made ? made->inode : InodeId{};
  }
  Status write(std::size_t size) {
    return engine_->write(file_, 0, as_bytes(std::string(size, 'x')));
  }

  MemoryDisk disk_;
  TickingClock clock_;
  std::unique_ptr<Random> random_ = make_real_random();
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
  InodeId file_;
};

TEST_F(EngineWaits, WriterOfAFullBufferEndsInTime) {
  ASSERT_TRUE(write(900 << 10));
  Gate gate(DiskOperation::kWrite, "segments/");
  gate.hold(disk_);
  std::thread flusher([&] { EXPECT_TRUE(engine_->sync_all()); });
  gate.wait_for_one();
  clock_.tick();
  EXPECT_EQ(write(900 << 10).error().code, Code::kTimeout);
  EXPECT_TRUE(engine_->attributes(file_));
  gate.let_go();
  flusher.join();
  EXPECT_TRUE(write(900 << 10));
  EXPECT_TRUE(engine_->sync_all());
}

TEST_F(EngineWaits, ChangeOfAFileThatIsBeingFlushedEndsInTime) {
  ASSERT_TRUE(write(200 << 10));
  Gate gate(DiskOperation::kWrite, "segments/");
  gate.hold(disk_);
  std::thread flusher([&] { EXPECT_TRUE(engine_->sync_all()); });
  gate.wait_for_one();
  clock_.tick();
  AttributeChange cut;
  cut.size = 5;
  EXPECT_EQ(engine_->set_attributes(file_, cut).error().code, Code::kTimeout);
  EXPECT_EQ(engine_->put("file", as_bytes("value")).error().code, Code::kTimeout);
  EXPECT_EQ(engine_->sync(file_).error().code, Code::kTimeout);
  EXPECT_EQ(engine_->sync_all().error().code, Code::kTimeout);
  EXPECT_EQ(engine_->clone_range(file_, 0, create("copy"), 0, 9).error().code, Code::kTimeout);
  EXPECT_TRUE(engine_->attributes(file_)) << "reads go on";
  EXPECT_EQ(engine_->seek(file_, 0, SeekKind::kHole).value(), 200u << 10);
  gate.let_go();
  flusher.join();
  EXPECT_TRUE(engine_->set_attributes(file_, cut));
  EXPECT_TRUE(engine_->close());
}

/// Nobody else would flush them: they stay in the list of what is dirty.
TEST_F(EngineWaits, BytesWhoseFlushWaitedTooLongAreFlushedLater) {
  const InodeId other = create("other");
  ASSERT_TRUE(write(200 << 10));
  Gate gate(DiskOperation::kWrite, "segments/");
  gate.hold(disk_);
  std::thread flusher([&] { EXPECT_TRUE(engine_->sync_all()); });
  gate.wait_for_one();
  ASSERT_TRUE(write(100 << 10));
  ASSERT_TRUE(engine_->write(other, 0, as_bytes(std::string(5000, 'o'))));
  clock_.tick();
  EXPECT_EQ(engine_->sync_all().error().code, Code::kTimeout);
  gate.let_go();
  flusher.join();
  EXPECT_TRUE(engine_->sync_all());
  EXPECT_EQ(engine_->counters().dirty_bytes, 0u);
}

/// Bytes that come later do not make it younger, and those of a flush count until its end.
TEST_F(EngineWaits, AgeIsOfTheOldestByteThatIsInNoSegment) {
  EXPECT_EQ(engine_->counters().dirty_age_ns, 0u);
  ASSERT_TRUE(write(200 << 10));
  Gate gate(DiskOperation::kWrite, "segments/");
  gate.hold(disk_);
  std::thread flusher([&] { EXPECT_TRUE(engine_->sync_all()); });
  gate.wait_for_one();
  clock_.tick();
  for (int i = 0; i < 7; ++i) clock_.boot_ns();
  ASSERT_TRUE(engine_->write(create("other"), 0, as_bytes("o")));
  EXPECT_GE(engine_->counters().dirty_age_ns, 7 * kSecond);
  gate.let_go();
  flusher.join();
  EXPECT_TRUE(engine_->sync_all());
  EXPECT_EQ(engine_->counters().dirty_age_ns, 0u);
}

TEST_F(EngineWaits, OrphanThatIsBeingFlushedIsFreedLater) {
  ASSERT_TRUE(write(200 << 10));
  Gate gate(DiskOperation::kWrite, "segments/");
  gate.hold(disk_);
  std::thread flusher([&] { EXPECT_TRUE(engine_->sync_all()); });
  gate.wait_for_one();
  clock_.tick();
  EXPECT_TRUE(engine_->unlink(kRootInode, "file"));
  gate.let_go();
  flusher.join();
  engine_->run_background();
  EXPECT_EQ(engine_->counters().inodes, 1u) << "only the root is left";
}

TEST_F(EngineWaits, SyncBehindAnotherOneEndsInTime) {
  ASSERT_TRUE(write(100));
  Gate gate(DiskOperation::kSync, "log/");
  gate.hold(disk_);
  std::thread leader([&] { EXPECT_TRUE(engine_->sync(file_)); });
  gate.wait_for_one();
  const InodeId other = create("other");
  clock_.tick();
  EXPECT_EQ(engine_->sync(other).error().code, Code::kTimeout);
  EXPECT_TRUE(engine_->lookup(kRootInode, "other")) << "reads go on";
  gate.let_go();
  leader.join();
  EXPECT_TRUE(engine_->sync(other)) << "a wait that was too long fails nothing for good";
}

TEST_F(EngineWaits, ChangeThatFindsTheLogFullEndsInTime) {
  Gate gate(DiskOperation::kWrite, "catalog/");
  gate.hold(disk_);
  clock_.tick();
  const std::string value(60'000, 'x');
  Status set;
  for (int i = 0; i < 1000 && set; ++i)
    set = engine_->set_xattr(file_, "user.a", value, XattrMode::kSet);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, Code::kTimeout);
  EXPECT_TRUE(engine_->xattr(file_, "user.a"));
  gate.let_go();
  EXPECT_TRUE(engine_->set_xattr(file_, "user.a", value, XattrMode::kSet));
  EXPECT_TRUE(engine_->close());
}

}  // namespace
}  // namespace kvsyncfs
