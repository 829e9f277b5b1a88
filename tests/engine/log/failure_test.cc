// LocalLog on a disk that refuses or fills up.
#include "tests/engine/log/log_fixture.h"

namespace kvsyncfs {
namespace {

class LocalLogFailure : public LocalLogTest {
 protected:
  /// The log is over: it confirms nothing more, whatever the disk does now.
  void expect_failed(Position durable) {
    disk_.set_hook({});
    EXPECT_EQ(log_->durable(), durable);
    for (int i = 0; i < 2; ++i) {
      const Status synced = log_->sync(log_->last());
      ASSERT_FALSE(synced);
      EXPECT_EQ(synced.error().code, Code::kIo);
      const Result<Position> appended = log_->append("more");
      ASSERT_FALSE(appended);
      EXPECT_EQ(appended.error().code, Code::kIo);
      EXPECT_FALSE(log_->freeze([](Position) { ADD_FAILURE() << "checkpoint of a failed log"; }));
      EXPECT_FALSE(log_->trim(durable)) << "nobody knows what the disk holds";
    }
    EXPECT_TRUE(log_->sync(durable)) << "what was confirmed stays confirmed";
  }
};

TEST_F(LocalLogFailure, FailedSyncIsForGood) {
  open();
  commit("one");
  append("two");
  disk_.set_hook(fail_from(DiskOperation::kSync, ".log", 1, Code::kIo));
  const Status status = log_->sync(Position{2});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().detail.find("made to fail"), std::string::npos) << "the cause is named";
  expect_failed(Position{1});
}

TEST_F(LocalLogFailure, FailedWriteIsForGood) {
  open();
  commit("one");
  append("two");
  disk_.set_hook(fail_from(DiskOperation::kWrite, ".log", 1, Code::kIo));
  EXPECT_FALSE(log_->sync(Position{2}));
  expect_failed(Position{1});
}

TEST_F(LocalLogFailure, FailedHookIsForGood) {
  bool fails = false;
  options_.before_write = [&]() -> Status {
    return fails ? Status(Error(Code::kIo, "segment 7")) : Status{};
  };
  open();
  commit("one");
  append("two");
  fails = true;
  const auto writes = disk_.count(DiskOperation::kWrite);
  EXPECT_FALSE(log_->sync(Position{2}));
  fails = false;
  expect_failed(Position{1});
  EXPECT_EQ(disk_.count(DiskOperation::kWrite), writes) << "entries whose bytes may be missing";
}

TEST_F(LocalLogFailure, ShortWriteLosesOnlyWhatWasNotConfirmed) {
  for (std::uint64_t written : {0u, 512u, 4096u, 8192u}) {
    SCOPED_TRACE(written);
    open();
    const Position before = log_->last();
    const Position kept = commit("kept");
    disk_.set_hook([&](DiskRequest& request) -> Status {
      if (request.operation != DiskOperation::kWrite) return {};
      *request.written = std::min(request.size, written);
      return Error(Code::kIo, "short");
    });
    append(std::string(9000, 'e'));
    EXPECT_FALSE(log_->sync(log_->last()));
    disk_.set_hook({});
    crash([](std::size_t) { return true; });
    open();
    EXPECT_EQ(log_->last(), kept);
    EXPECT_EQ(seen_.size(), before.value + 1);
  }
}

TEST_F(LocalLogFailure, FailedOpenOfTheNextFileIsForGood) {
  open();
  disk_.set_hook(fail_from(DiskOperation::kOpen, ".log", 1, Code::kIo));
  append("one");
  EXPECT_FALSE(log_->sync(Position{1}));
  expect_failed(Position{0});
}

TEST_F(LocalLogFailure, FailedTrimIsForGoodAndLosesNothing) {
  open();
  for (int i = 0; i < 40; ++i) commit(std::string(3000, 'e'));
  append("not synced");
  disk_.set_hook(fail_from(DiskOperation::kRename, ".log", 1, Code::kIo));
  EXPECT_FALSE(log_->trim(log_->durable()));
  expect_failed(Position{40});
  crash();
  open();
  EXPECT_EQ(seen_.size(), 40u);
}

TEST_F(LocalLogFailure, FullDiskKeepsEntriesAndPasses) {
  open();
  bool full = true;
  disk_.set_hook([&](DiskRequest& request) -> Status {
    if (request.operation == DiskOperation::kAllocate && full) return Error(Code::kNoSpace, "full");
    return {};
  });
  Entries wrote;
  Status status;
  while (status) {  // the first file lasts for a while
    ASSERT_LT(wrote.size(), 100u);
    wrote.push_back(std::to_string(wrote.size()) + std::string(3000, 'e'));
    append(wrote.back());
    status = log_->sync(log_->last());
  }
  EXPECT_EQ(status.error().code, Code::kNoSpace);
  EXPECT_EQ(log_->sync(log_->last()).error().code, Code::kNoSpace);
  EXPECT_TRUE(log_->sync(log_->durable()));
  EXPECT_EQ(log_->freeze([](Position) {}).error().code, Code::kNoSpace);
  full = false;
  ASSERT_TRUE(log_->sync(log_->last()));
  crash();
  open();
  EXPECT_EQ(seen_, wrote);
}

TEST_F(LocalLogFailure, FullDiskRefusesAppendsBeforeTheyAreApplied) {
  open();
  disk_.set_hook(fail_from(DiskOperation::kAllocate, "", 1, Code::kNoSpace));
  Result<Position> position = Position{};
  std::size_t taken = 0;
  for (; position; taken += position ? 1 : 0) {
    ASSERT_LT(taken, 1000u);
    position = log_->append(std::string(3000, 'e'));
  }
  EXPECT_EQ(position.error().code, Code::kNoSpace);
  EXPECT_EQ(seen_.size(), taken);
  EXPECT_EQ(log_->last().value, taken);
}

TEST_F(LocalLogFailure, FullDiskDoesNotKeepTheLogFromOpening) {
  open();
  for (int i = 0; i < 30; ++i) commit(std::string(3000, 'e'));
  disk_.set_hook(fail_from(DiskOperation::kAllocate, "", 1, Code::kNoSpace));
  crash();
  open();
  EXPECT_EQ(seen_.size(), 30u);
  // A checkpoint gives room, with no need of a new file.
  ASSERT_TRUE(log_->freeze([](Position) {}));
  ASSERT_TRUE(log_->trim(Position{30}));
  commit("next");
}

TEST_F(LocalLogFailure, FormatOnAFullDiskLeavesNoFile) {
  options_.directory = "store/other";
  disk_.set_hook(fail_from(DiskOperation::kAllocate, "", 1, Code::kNoSpace));
  const Status status = format_local_log(disk_, options_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNoSpace);
  EXPECT_TRUE(log_files().empty());
}

TEST_F(LocalLogFailure, UnreadableFileIsIoNotAnEnd) {
  open();
  commit("one");
  log_.reset();
  disk_.set_hook(fail_from(DiskOperation::kRead, ".log", 1, Code::kIo));
  const Status status = try_open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
}

}  // namespace
}  // namespace kvsyncfs
