// The engine under many threads at once, on a real disk and with its background thread. Built with
// the thread sanitizer this is what shows a missing lock; in every build what one thread wrote is
// what it reads, an operation on a file is whole for everybody else, and the store stays clean.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "engine/env/real.h"
#include "engine/workers.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kThreads = 4, kRounds = 400, kPage = 4096;
/// The thread sanitizer follows at most 64 locks of a thread, and a flush holds one of each inode
/// that it writes: so all of them together are fewer.
constexpr std::size_t kSharedFiles = 12, kVictims = 24;
constexpr std::uint64_t kSizeMax = 512 << 10;

/// A small generator of a thread's own; the same run of calls each time.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_;
};

/// What a call may meet when others change the same names and files.
bool is_expected(const Status& status) {
  if (status) return true;
  switch (status.error().code) {
    case Code::kNotFound:
    case Code::kExists:
    case Code::kNoData:
    case Code::kNoSuchRange:
    case Code::kNotEmpty:
    case Code::kInvalid:
      return true;
    default:
      return false;
  }
}

template <typename T>
Status status_of(const Result<T>& result) {
  return result ? Status{} : Status(result.error());
}

NewNode regular_file() {
  NewNode node;
  node.mode = 0100644;
  return node;
}

class EngineThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    FormatOptions format;
    format.store = options_.store = folder_.path();
    format.uuid[0] = 1;
    format.size_bytes = std::uint64_t{64} << 20;
    ASSERT_TRUE(Engine::format(*disk_, *clock_, format));
    options_.write_buffer_bytes = 1 << 20;
    options_.cache_size_bytes = 1 << 20;
    options_.write_age_ns = 20'000'000;
    options_.warn = [](std::string_view line) { ADD_FAILURE() << line; };
    open();
  }

  void open() {
    auto engine = Engine::open(*disk_, *clock_, *random_, options_);
    ASSERT_TRUE(engine) << describe(engine.error());
    engine_ = std::move(*engine);
  }

  InodeId create(const std::string& name) {
    const auto made = engine_->create(kRootInode, name, regular_file());
    EXPECT_TRUE(made) << describe(made.error());
    if (!made) return {};
    engine_->retain(made->inode);
    return made->inode;
  }

  /// Runs `body` in each thread while the background thread works.
  void run(const std::function<void(std::size_t thread)>& body) {
    const Workers workers(*engine_, *clock_);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  }

  /// Closes it, and opens it again to look through it.
  void expect_clean() {
    ASSERT_TRUE(engine_->close());
    engine_.reset();
    open();
    Engine::CheckOptions check;
    check.scrub = true;
    check.report = [](const std::string& line) { ADD_FAILURE() << line; };
    const auto report = engine_->check(check);
    ASSERT_TRUE(report) << describe(report.error());
    EXPECT_EQ(report->problems, 0u);
    EXPECT_EQ(report->bad_pages, 0u);
  }

  TempFolder folder_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

/// One thread's file, and what it must hold.
class OwnFile {
 public:
  OwnFile(const std::unique_ptr<Engine>& engine, InodeId inode, std::uint64_t seed)
      : engine_(engine), inode_(inode), dice_(seed) {}

  void step() {
    const std::uint64_t offset = dice_.below(kSizeMax / 2), length = 1 + dice_.below(40'000);
    switch (dice_.below(8)) {
      case 0:
      case 1:
      case 2:
        return write(offset, length);
      case 3:
        return cut(offset);
      case 4:
        ASSERT_TRUE(engine_->allocate(inode_, offset, length, AllocateMode::kPunchHole));
        if (offset < bytes_.size())
          bytes_.replace(offset, std::min(length, bytes_.size() - offset),
                         std::min(length, bytes_.size() - offset), '\0');
        return;
      case 5:
        ASSERT_TRUE(engine_->sync(inode_));
        return;
      default:
        return compare(offset, length);
    }
  }
  void compare(std::uint64_t offset, std::uint64_t length) {
    std::string got(length, '?');
    const auto count = engine_->read(inode_, offset, mutable_bytes(got));
    ASSERT_TRUE(count) << describe(count.error());
    got.resize(*count);
    const std::string want = offset < bytes_.size() ? bytes_.substr(offset, length) : "";
    ASSERT_TRUE(got == want) << "at " << offset << ", " << length << " bytes";
  }
  void compare_all() { compare(0, kSizeMax); }

 private:
  static MutableBytes mutable_bytes(std::string& text) {
    return {reinterpret_cast<std::byte*>(text.data()), text.size()};
  }
  void write(std::uint64_t offset, std::uint64_t length) {
    const std::string piece(length, static_cast<char>('a' + dice_.below(26)));
    ASSERT_TRUE(engine_->write(inode_, offset, as_bytes(piece)));
    if (bytes_.size() < offset + length) bytes_.resize(offset + length, '\0');
    bytes_.replace(offset, length, piece);
  }
  void cut(std::uint64_t size) {
    AttributeChange change;
    change.size = size;
    ASSERT_TRUE(engine_->set_attributes(inode_, change));
    bytes_.resize(size, '\0');
  }

  const std::unique_ptr<Engine>& engine_;  ///< of the test, which opens it again at its end
  const InodeId inode_;
  Dice dice_;
  std::string bytes_;
};

TEST_F(EngineThreads, WhatAThreadWroteIsWhatItReads) {
  std::vector<OwnFile> files;
  for (std::size_t i = 0; i < kThreads; ++i)
    files.emplace_back(engine_, create("own" + std::to_string(i)), i);
  run([&](std::size_t thread) {
    for (std::size_t i = 0; i < kRounds && !HasFatalFailure(); ++i) files[thread].step();
    files[thread].compare_all();
  });
  expect_clean();
  for (OwnFile& file : files) file.compare_all();
}

TEST_F(EngineThreads, AWriteIsWholeForEveryReader) {
  std::array<InodeId, kSharedFiles> files;
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = create("f" + std::to_string(i));
  run([&](std::size_t thread) {
    Dice dice(thread);
    for (std::size_t i = 0; i < kRounds && !HasFatalFailure(); ++i) {
      const InodeId file = files[dice.below(files.size())];
      const std::uint64_t offset = dice.below(8) * 4 * kPage;
      std::string block(4 * kPage, static_cast<char>('a' + dice.below(26)));
      if (dice.below(2) == 0) {
        ASSERT_TRUE(engine_->write(file, offset, as_bytes(block)));
      } else if (dice.below(4) == 0) {
        const InodeId source = files[dice.below(files.size())];
        if (source == file) continue;
        ASSERT_TRUE(engine_->clone_range(source, offset, file, offset, 4 * kPage));
      } else {
        const auto count =
            engine_->read(file, offset, {reinterpret_cast<std::byte*>(block.data()), block.size()});
        ASSERT_TRUE(count) << describe(count.error());
        block.resize(*count);
        ASSERT_EQ(block.find_first_not_of(block.substr(0, 1)), std::string::npos);
      }
    }
  });
  expect_clean();
}

/// One random call on names that all threads use.
Status call_on_names(Engine& engine, Dice& dice, std::atomic<std::size_t>& victims) {
  const auto name = [&] { return "n" + std::to_string(dice.below(10)); };
  switch (dice.below(10)) {
    case 0:
      return status_of(engine.create(kRootInode, name(), regular_file()));
    case 1:
      return engine.unlink(kRootInode, name());
    case 2:
      return engine.rename(kRootInode, name(), kRootInode, name(),
                           static_cast<RenameMode>(dice.below(3)));
    case 3:
      return status_of(engine.list(kRootInode, 0, 100, true));
    case 4:
      return status_of(engine.space());
    case 5:
      return engine.sync_all();
    default:
      break;
  }
  const auto found = engine.lookup(kRootInode, name());
  if (!found) return found.error();
  switch (dice.below(6)) {
    case 0:
      return status_of(engine.link(found->inode, kRootInode, name()));
    case 1:
      engine.touch(found->inode);
      return status_of(engine.attributes(found->inode));
    case 2:
      return engine.set_xattr(found->inode, "user.a", "b", XattrMode::kSet);
    case 3:
      return status_of(engine.xattr(found->inode, "user.a"));
    case 4:
      return engine.sync(found->inode);
    default:
      if (victims.fetch_add(1) >= kVictims) return {};
      return engine.write(found->inode, 0, as_bytes(std::string(30'000, 'v')));
  }
}

TEST_F(EngineThreads, ChangesOfTheSameNamesLeaveACleanStore) {
  std::atomic<std::size_t> victims = 0;
  run([&](std::size_t thread) {
    Dice dice(thread);
    for (std::size_t i = 0; i < kRounds && !HasFatalFailure(); ++i) {
      const Status done = call_on_names(*engine_, dice, victims);
      ASSERT_TRUE(is_expected(done)) << describe(done.error());
    }
  });
  expect_clean();
}

TEST_F(EngineThreads, AValueIsTheOldOneOrTheNewOne) {
  const auto key = [](Dice& dice) { return "k/" + std::to_string(dice.below(8)); };
  run([&](std::size_t thread) {
    Dice dice(thread);
    for (std::size_t i = 0; i < kRounds && !HasFatalFailure(); ++i) {
      if (dice.below(2) == 0) {
        const std::string value(1 + dice.below(30'000), static_cast<char>('a' + dice.below(26)));
        ASSERT_TRUE(engine_->put(key(dice), as_bytes(value)));
      } else if (dice.below(8) == 0) {
        ASSERT_TRUE(engine_->list_keys("k/", 100));
        engine_->counters();
      } else {
        const auto value = engine_->hybrid_get(key(dice));
        ASSERT_TRUE(is_expected(status_of(value)));
        const std::string text = value ? *value : "";
        ASSERT_EQ(text.find_first_not_of(text.substr(0, 1)), std::string::npos);
      }
    }
  });
  expect_clean();
}

}  // namespace
}  // namespace kvsyncfs
