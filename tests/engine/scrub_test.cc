// The scrub that runs by itself on a lone node.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_admin.h"
#include "engine/env/real.h"
#include "engine/format/segment_layout.h"
#include "tests/lib/memory_disk.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// Stands until a test moves it.
class ManualClock final : public Clock {
 public:
  Timestamp now() override { return {static_cast<std::int64_t>(1000 + ns_ / kSecond), 0}; }
  std::uint64_t boot_ns() override { return ns_; }
  void advance(std::uint64_t ns) { ns_ += ns; }

 private:
  std::atomic<std::uint64_t> ns_ = kSecond;
};

class Scrubbing : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPeriod = 1000;  // seconds

  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("store"));
    FormatOptions format;
    format.store = "store";
    format.uuid[0] = 1;
    format.size_bytes = 4 * kStoreSizeMin;
    ASSERT_TRUE(Engine::format(disk_, clock_, format));
    open();
    for (const char* key : {"a", "b", "c"})
      ASSERT_TRUE(engine_->put(key, as_bytes(std::string(4u << 20, *key))));
    reopen();  // seals
  }
  void open() {
    EngineOptions options;
    options.store = "store";
    options.scrub_period_ns = period_ * kSecond;
    options.warn = [this](std::string_view line) { warned_.emplace_back(line); };
    auto engine = Engine::open(disk_, clock_, *random_, options);
    ASSERT_TRUE(engine) << describe(engine.error());
    engine_ = std::move(*engine);
  }
  void reopen() {
    ASSERT_TRUE(engine_->close());
    engine_.reset();
    open();
  }
  void step() {
    clock_.advance(20 * kSecond);  // at the least rate one step is over by then
    engine_->run_background();
  }
  /// The rest of a pass, and no more.
  void pass() {
    for (int i = 0; i < 20; ++i) step();
  }
  EngineCounters counters() const { return engine_->counters(); }
  bool is_told(std::string_view words) const {
    for (const std::string& line : engine_->degraded())
      if (line.find(words) != std::string::npos) return true;
    return false;
  }
  /// Flips a byte in the first page of file bytes of a segment; twice is not at all.
  void flip() {
    for (const std::string& name : disk_.list("store/segments").value()) {
      if (!name.ends_with(".seg")) continue;
      std::string bytes = disk_.contents("store/segments/" + name);
      if (bytes.size() < 2 * kPageSize || bytes[kPageSize + 9] == 0) continue;
      bytes[kPageSize + 9] = static_cast<char>(bytes[kPageSize + 9] ^ 0x80);
      return disk_.set_contents("store/segments/" + name, bytes);
    }
    FAIL() << "no segment has bytes";
  }

  std::uint64_t period_ = kPeriod;
  MemoryDisk disk_;
  ManualClock clock_;
  std::unique_ptr<Random> random_ = make_real_random();
  std::vector<std::string> warned_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(Scrubbing, APassBeginsAPeriodAfterTheLastOneAndReadsEverything) {
  step();
  EXPECT_EQ(counters().scrubbed_bytes, 0u) << "the store is young";
  clock_.advance(kPeriod * kSecond);
  pass();
  const EngineCounters done = counters();
  EXPECT_GE(done.scrubbed_bytes, 12u << 20);
  EXPECT_EQ(done.scrub_done_bytes, done.scrub_total_bytes);
  EXPECT_EQ(done.scrub_bad_pages, 0u);
  EXPECT_TRUE(engine_->degraded().empty());
  pass();
  EXPECT_EQ(counters().scrubbed_bytes, done.scrubbed_bytes) << "the next one is not due";
}

TEST_F(Scrubbing, TheTimeToTheNextPassGoesOnOverARestart) {
  step();
  clock_.advance(kPeriod * kSecond / 2);
  reopen();
  step();
  EXPECT_EQ(counters().scrubbed_bytes, 0u);
  clock_.advance(kPeriod * kSecond / 2);
  pass();
  EXPECT_GT(counters().scrubbed_bytes, 0u);
}

TEST_F(Scrubbing, APassGoesOnAfterARestartWhereItWas) {
  step();
  clock_.advance(kPeriod * kSecond);
  step();
  const EngineCounters before = counters();
  ASSERT_GT(before.scrub_done_bytes, 0u);
  ASSERT_LT(before.scrub_done_bytes, before.scrub_total_bytes) << "one step is no pass";
  reopen();
  step();
  EXPECT_GT(counters().scrub_done_bytes, before.scrub_done_bytes);
  EXPECT_LE(counters().scrubbed_bytes, before.scrubbed_bytes) << "only what was left of it";
}

TEST_F(Scrubbing, WhatIsDamagedIsToldOnceAndUntilItIsNotAnyMore) {
  step();
  flip();
  reopen();  // so that nothing of it is in memory
  warned_.clear();
  clock_.advance(kPeriod * kSecond);
  pass();
  EXPECT_GT(counters().scrub_bad_pages, 0u);
  EXPECT_EQ(std::count_if(warned_.begin(), warned_.end(),
                          [](const std::string& line) { return line.starts_with("scrub: "); }),
            1);
  EXPECT_TRUE(is_told("damaged"));
  reopen();
  step();
  EXPECT_TRUE(is_told("damaged")) << "after a restart";
  flip();
  reopen();
  step();
  ScrubPlace at;
  do {
    const auto asked = engine_->admin().scrub(at);
    ASSERT_TRUE(asked);
    EXPECT_TRUE(asked->bad.empty());
    at = asked->next;
  } while (at.segment != kNoSegment);
  EXPECT_FALSE(is_told("damaged")) << "an operator's scrub found nothing";
}

TEST_F(Scrubbing, APeriodOf0IsNever) {
  period_ = 0;
  reopen();
  clock_.advance(1000 * kPeriod * kSecond);
  pass();
  EXPECT_EQ(counters().scrubbed_bytes, 0u);
  EXPECT_FALSE(disk_.exists("store/scrub-mark").value());
}

TEST_F(Scrubbing, UsersComeFirstButNotForEver) {
  step();
  clock_.advance(kPeriod * kSecond);
  const auto busy = [&] {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine_->get("a"));
    step();
  };
  for (int i = 0; i < 10; ++i) busy();
  EXPECT_EQ(counters().scrubbed_bytes, 0u);
  for (int i = 0; i < 60; ++i) busy();
  EXPECT_GT(counters().scrubbed_bytes, 0u);
}

}  // namespace
}  // namespace kvsyncfs
