// Appends of several threads, where each batch waits for other holders.
#include <atomic>
#include <condition_variable>
#include <thread>

#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

class SegmentStoreAppendTogether : public StoreTest {
 protected:
  static constexpr int kThreads = 8, kAppends = 50;

  /// A batch is on its way until all who still append have come to do so.
  void SetUp() override {
    StoreTest::SetUp();
    options_.segment_size_bytes = 1024 * kPageSize;
    options_.size_bytes = 16 * options_.segment_size_bytes;
    options_.ship = [this](SegmentId, std::uint64_t, std::span<const Bytes>) {
      return [this]() -> Status {
        std::unique_lock lock(gate_mutex_);
        ++shipments_;
        changed_.wait(lock, [this] { return inside_ == threads_; });
        return refuse_ ? Status(Error(Code::kTimeout, "holder")) : Status{};
      };
    };
    make();
  }

  void count(int& number, int change) {
    std::lock_guard lock(gate_mutex_);
    number += change;
    changed_.notify_all();
  }

  /// `check` sees the runs of each append, and what became of it.
  template <typename Check>
  void append_from_threads(int appends, Check check) {
    threads_ = kThreads;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([this, t, appends, check] {
        for (int i = 0; i < appends; ++i) {
          const auto seed = static_cast<std::uint64_t>(t * 1000 + i);
          const std::vector<std::string> runs{random_bytes(100 + seed % 77, seed),
                                              random_bytes((1 + seed % 3) * kPageSize, seed + 1)};
          const std::vector<Bytes> bytes{as_bytes(runs[0]), as_bytes(runs[1])};
          count(inside_, 1);
          const auto placed = store_->append(Stream::kUser, bytes);
          count(inside_, -1);
          check(runs, placed);
        }
        count(threads_, -1);
      });
    for (std::thread& thread : threads) thread.join();
  }

  std::mutex gate_mutex_;
  std::condition_variable changed_;
  int inside_ = 0, threads_ = 0, shipments_ = 0;
  bool refuse_ = false;
};

TEST_F(SegmentStoreAppendTogether, ThoseThatWaitShareABatch) {
  append_from_threads(kAppends, [this](const auto& runs, const auto& placed) {
    ASSERT_TRUE(placed) << describe(placed.error());
    expect_content(runs, *placed);
  });
  EXPECT_LT(shipments_, kThreads * kAppends / 2);
}

TEST_F(SegmentStoreAppendTogether, AnErrorIsThatOfAll) {
  refuse_ = true;
  std::atomic<int> refused = 0;
  append_from_threads(1, [&](const auto&, const auto& placed) {
    if (!placed && placed.error().code == Code::kTimeout) ++refused;
  });
  EXPECT_EQ(refused, kThreads);
}

TEST_F(SegmentStoreAppendTogether, OneThatNobodyJoinsDoesNotWait) {
  count(inside_, 1);
  count(threads_, 1);
  expect_content({"alone"}, append({"alone"}));
  EXPECT_EQ(shipments_, 1);
}

}  // namespace
}  // namespace kvsyncfs
