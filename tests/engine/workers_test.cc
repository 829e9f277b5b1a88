#include "engine/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kFarNs = std::uint64_t{1} << 62;

/// An engine of which only the background step is used.
class FakeEngine : public Engine {
 public:
  /// Waits until `count` background steps have been started.
  void wait_for_steps(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return steps_ >= count; });
  }
  int steps() {
    std::lock_guard lock(mutex_);
    return steps_;
  }
  void set_due(std::uint64_t due_ns) {
    std::lock_guard lock(mutex_);
    due_ns_ = due_ns;
  }
  void wake() { wakeup_(); }

  std::uint64_t run_background() override {
    EXPECT_FALSE(is_running_.exchange(true)) << "two background steps at a time";
    std::lock_guard lock(mutex_);
    ++steps_;
    changed_.notify_all();
    is_running_ = false;
    return due_ns_;
  }
  void set_on_moved(std::function<void(InodeId, std::string_view)>) override {}
  void set_wakeup(std::function<void()> wakeup) override { wakeup_ = std::move(wakeup); }

  Status close() override { return {}; }
  const Superblock& superblock() const override { return superblock_; }
  Result<Entry> lookup(InodeId, std::string_view) override { return kNone; }
  Result<Entry> create(InodeId, std::string_view, const NewNode&) override { return kNone; }
  Result<Entry> link(InodeId, InodeId, std::string_view) override { return kNone; }
  Status unlink(InodeId, std::string_view) override { return kNone; }
  Status remove_directory(InodeId, std::string_view) override { return kNone; }
  Status rename(InodeId, std::string_view, InodeId, std::string_view, RenameMode) override {
    return kNone;
  }
  Result<std::vector<ListEntry>> list(InodeId, std::uint64_t, std::size_t, bool) override {
    return kNone;
  }
  std::uint64_t newest_cookie() const override { return 0; }
  void retain(InodeId, std::uint64_t) override {}
  void release(InodeId, std::uint64_t) override {}
  Result<bool> open_handle(InodeId) override { return true; }
  std::uint64_t next_handle() override { return 0; }
  Status check_handle(InodeId, std::uint64_t) override { return {}; }
  Status check_change(InodeId, std::uint64_t) override { return {}; }
  Status check_bytes(InodeId, std::uint64_t) override { return {}; }
  void set_forget_pages(std::function<void(InodeId)>) override {}
  void close_handle(InodeId) override {}
  Result<Inode> attributes(InodeId) override { return kNone; }
  Result<Inode> attributes_of_open(InodeId) override { return kNone; }
  std::uint64_t keep_attributes(InodeId) override { return 0; }
  void set_forget_attributes(std::function<bool(InodeId)>) override {}
  Result<Inode> set_attributes(InodeId, const AttributeChange&) override { return kNone; }
  void touch(InodeId) override {}
  Result<std::string> xattr(InodeId, std::string_view) override { return kNone; }
  Result<std::vector<std::string>> xattr_names(InodeId) override { return kNone; }
  Status set_xattr(InodeId, std::string_view, std::string_view, XattrMode, bool) override {
    return kNone;
  }
  Status remove_xattr(InodeId, std::string_view) override { return kNone; }
  Result<std::size_t> read(InodeId, std::uint64_t, MutableBytes) override { return kNone; }
  Status write(InodeId, std::uint64_t, Bytes, WriteOptions) override { return kNone; }
  Result<bool> clear_privileges(InodeId, const GroupTest&) override { return kNone; }
  Status sync(InodeId) override { return kNone; }
  Status flush(InodeId) override { return {}; }
  Status sync_all() override { return kNone; }
  EngineAdmin& admin() override { std::abort(); }
  std::uint64_t begin_lock(LockDone) override { return 0; }
  void lock(std::uint64_t, const LockRange&, LockType, bool) override {}
  void cancel_lock(std::uint64_t) override {}
  Status unlock(const LockRange&) override { return {}; }
  void drop_locks(InodeId, LockKind, std::uint64_t) override {}
  Result<std::optional<HeldLock>> lock_in_the_way(const LockRange&, LockType) override {
    return kNone;
  }
  Status allocate(InodeId, std::uint64_t, std::uint64_t, AllocateMode) override { return kNone; }
  Result<std::uint64_t> clone_range(InodeId, std::uint64_t, InodeId, std::uint64_t,
                                    std::uint64_t) override {
    return kNone;
  }
  Result<std::uint64_t> seek(InodeId, std::uint64_t, SeekKind) override { return kNone; }
  Result<SpaceInfo> space() override { return kNone; }
  EngineCounters counters() const override { return {}; }
  std::vector<std::string> degraded() const override { return {}; }
  Status failure() const override { return {}; }
  Status put(std::string_view, Bytes) override { return kNone; }
  Result<std::string> get(std::string_view) override { return kNone; }
  Status remove(std::string_view) override { return kNone; }
  Result<std::vector<std::string>> list_keys(std::string_view, std::size_t,
                                             std::string_view) override {
    return kNone;
  }
  Result<std::string> hybrid_get(std::string_view, Tier*) override { return kNone; }
  Result<CheckReport> check(const CheckOptions&) override { return kNone; }

 private:
  static constexpr Code kNone = Code::kUnsupported;
  Superblock superblock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> is_running_{false};
  int steps_ = 0;
  std::uint64_t due_ns_ = kFarNs;
  std::function<void()> wakeup_;
};

class StillClock : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t boot_ns() override { return 1000; }
};

TEST(Workers, RunAStepAtOnceAndAgainAsLongAsOneIsDue) {
  FakeEngine engine;
  engine.set_due(0);
  StillClock clock;
  Workers workers(engine, clock);
  engine.wait_for_steps(100);
}

TEST(Workers, RunAStepAgainWhenTheTimeThatTheEngineAskedForIsReached) {
  FakeEngine engine;
  engine.set_due(1000 + 1'000'000);  // 1 ms from the clock's now
  StillClock clock;
  Workers workers(engine, clock);
  engine.wait_for_steps(3);
}

TEST(Workers, WaitWhileNothingIsDueUntilTheyAreWoken) {
  FakeEngine engine;
  StillClock clock;
  Workers workers(engine, clock);
  engine.wait_for_steps(1);
  for (int step = 2; step < 100; ++step) {
    engine.wake();
    engine.wait_for_steps(step);
    ASSERT_LE(engine.steps(), step) << "a step that nobody asked for";
  }
}

TEST(Workers, StopAtOnceAlthoughTheNextStepIsFarAway) {
  for (int i = 0; i < 100; ++i) {
    FakeEngine engine;
    StillClock clock;
    Workers workers(engine, clock);
  }
}

TEST(Workers, AWakeupAfterTheirEndIsHarmless) {
  FakeEngine engine;
  StillClock clock;
  { Workers workers(engine, clock); }
  const int steps = engine.steps();
  engine.wake();
  engine.wake();
  EXPECT_EQ(engine.steps(), steps);
}

TEST(Workers, WakeupsFromManyThreadsLoseNoStep) {
  FakeEngine engine;
  StillClock clock;
  Workers workers(engine, clock);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) engine.wake();
    });
  }
  for (auto& thread : threads) thread.join();
  const int steps = engine.steps();
  engine.wake();
  engine.wait_for_steps(steps + 1);
}

}  // namespace
}  // namespace kvsyncfs
