// LocalLog under many threads: order, group commit, freeze. Run by ThreadSanitizer too.
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "tests/engine/log/log_fixture.h"
#include "tests/lib/ticking_clock.h"

namespace kvsyncfs {
namespace {

class LocalLogConcurrency : public LocalLogTest {
 protected:
  LocalLogConcurrency() { options_.file_count_max = 64; }

  template <typename Work>
  void run(int thread_count, Work work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i) threads.emplace_back([=] { work(i); });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(LocalLogConcurrency, WaitersShareOneSync) {
  constexpr int kThreads = 16;
  open();
  commit("first");  // the file is there
  std::mutex mutex;
  std::condition_variable changed;
  int appended = 0;
  // The first sync does not end before everybody has appended, so that the rest must queue behind
  // it.
  disk_.set_hook([&](DiskRequest& request) -> Status {
    if (request.operation != DiskOperation::kSync) return {};
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return appended == kThreads; });
    return {};
  });
  const auto syncs = disk_.count(DiskOperation::kSync);
  run(kThreads, [&](int) {
    const Position position = append("entry");
    {
      std::lock_guard lock(mutex);
      ++appended;
    }
    changed.notify_all();
    EXPECT_TRUE(log_->sync(position));
    EXPECT_GE(log_->durable(), position);
  });
  EXPECT_LE(disk_.count(DiskOperation::kSync) - syncs, 2u);
}

TEST_F(LocalLogConcurrency, AppendsGoOnWhileABatchIsSynced) {
  open();
  commit("first");
  std::atomic<bool> appended = false;
  disk_.set_hook([&](DiskRequest& request) -> Status {
    if (request.operation == DiskOperation::kSync) appended.wait(false);
    return {};
  });
  append("second");
  std::thread syncer([&] { EXPECT_TRUE(log_->sync(Position{2})); });
  append("third");  // would wait for ever if the sync kept appends out
  appended = true;
  appended.notify_all();
  syncer.join();
  EXPECT_TRUE(log_->sync(Position{3}));
}

TEST_F(LocalLogConcurrency, FreezeKeepsAppendsOut) {
  open();
  append("one");
  std::atomic<bool> appended = false;
  std::thread appender;
  ASSERT_TRUE(log_->freeze([&](Position position) {
    appender = std::thread([&] {
      append("two");
      appended = true;
    });
    for (int i = 0; i < 1000; ++i) {
      std::this_thread::yield();
      EXPECT_FALSE(appended);
      EXPECT_EQ(log_->last(), position);
    }
  }));
  appender.join();
  EXPECT_EQ(log_->last(), Position{2});
}

TEST_F(LocalLogConcurrency, EveryWaiterLearnsOfAFailure) {
  open();
  commit("one");
  disk_.set_hook(fail_from(DiskOperation::kSync, ".log", 1, Code::kIo));
  std::atomic<int> failures = 0;
  run(8, [&](int) {
    const Result<Position> position = log_->append("entry");
    if (!position || !log_->sync(*position)) ++failures;
  });
  EXPECT_EQ(failures, 8);
  EXPECT_EQ(log_->durable(), Position{1});
}

TEST_F(LocalLogConcurrency, EverythingAtOnceKeepsTheOrder) {
  constexpr int kThreads = 4, kEntries = 400;
  open();
  std::atomic<std::uint64_t> trimmed = 0;
  run(kThreads, [&](int thread) {
    std::uint64_t before = 0;
    for (int i = 0; i < kEntries; ++i) {
      const std::string entry =
          std::to_string(thread) + ":" + std::to_string(i) + std::string(i % 7 * 500, '.');
      const Position position = append(entry);
      EXPECT_GT(position.value, before);
      before = position.value;
      if (i % 5 == thread) {
        EXPECT_TRUE(log_->sync(position));
      }
      if (i % 50 == 49 && thread == 0) {
        EXPECT_TRUE(log_->freeze([&](Position frozen) { trimmed = frozen.value; }));
        EXPECT_TRUE(log_->trim(Position{trimmed}));
      }
      if (i % 50 == 25) {
        EXPECT_LE(log_->durable(), log_->last());
      }
    }
  });
  ASSERT_TRUE(log_->sync(log_->last()));
  const Entries applied = seen_;  // the fixture's applier checks that positions are dense
  ASSERT_EQ(applied.size(), std::size_t{kThreads * kEntries});
  crash();
  open(Position{trimmed});
  EXPECT_EQ(seen_,
            Entries(applied.begin() + static_cast<std::ptrdiff_t>(trimmed.load()), applied.end()));
}

TEST_F(LocalLogConcurrency, AppendBehindALongFreezeEndsInTime) {
  TickingClock clock;
  options_.clock = &clock;
  open();
  std::promise<void> frozen, go_on;
  std::thread freezer([&] {
    EXPECT_TRUE(log_->freeze([&](Position) {
      frozen.set_value();
      go_on.get_future().wait();
    }));
  });
  frozen.get_future().wait();
  clock.tick();
  EXPECT_EQ(log_->append("too late").error().code, Code::kTimeout);
  EXPECT_EQ(log_->last(), Position{0});
  go_on.set_value();
  freezer.join();
  EXPECT_EQ(append("in time"), Position{1});
}

}  // namespace
}  // namespace kvsyncfs
