// The everyday rules of LocalLog: order, replay, sync, trim, bounds.
#include "engine/log/local_log.h"

#include "tests/engine/log/log_fixture.h"

namespace kvsyncfs {
namespace {

using LocalLog = LocalLogTest;

TEST_F(LocalLog, PositionsAreDenseFromOne) {
  open();
  EXPECT_EQ(log_->last(), Position{0});
  for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(append("entry"), Position{i});
  EXPECT_EQ(log_->last(), Position{100});
}

TEST_F(LocalLog, EntryIsAppliedWhenAppendReturns) {
  open();
  append("one");
  EXPECT_EQ(seen_, Entries{"one"});
  EXPECT_EQ(log_->durable(), Position{0});
}

TEST_F(LocalLog, ReplayGivesWhatWasAppended) {
  open();
  Entries wrote;
  for (int i = 0; i < 500; ++i) {
    wrote.push_back(std::string(static_cast<std::size_t>(i), static_cast<char>(i)));
    append(wrote.back());
    if (i % 25 == 0) {
      ASSERT_TRUE(log_->sync(log_->last()));
    }
  }
  ASSERT_TRUE(log_->sync(log_->last()));
  EXPECT_EQ(log_->durable(), Position{500});
  crash();
  open();
  EXPECT_EQ(seen_, wrote);
  EXPECT_EQ(log_->last(), Position{500});
  EXPECT_EQ(append("more"), Position{501});
}

TEST_F(LocalLog, EmptyEntryIsAnEntry) {
  open();
  commit("");
  commit("x");
  crash();
  open();
  EXPECT_EQ(seen_, (Entries{"", "x"}));
}

TEST_F(LocalLog, ReplayHandsOutAlsoWhatIsAppliedUntilItIsTrimmed) {
  open();
  for (const char* entry : {"one", "two", "three"}) commit(entry);
  append("four");
  commit("five");
  crash();
  for (int life = 0; life < 3; ++life) {
    open(Position{4});
    EXPECT_EQ(handed_out_, 5u) << "only the log may hold these bytes, life " << life;
    EXPECT_EQ(seen_, Entries{"five"});
    EXPECT_EQ(first_seen_, Position{5});
    crash();
  }
}

TEST_F(LocalLog, SyncOfADurablePositionTouchesNoDisk) {
  open();
  const Position first = commit("one");
  append("two");
  const auto writes = disk_.count(DiskOperation::kWrite);
  const auto syncs = disk_.count(DiskOperation::kSync);
  EXPECT_TRUE(log_->sync(first));
  EXPECT_EQ(disk_.count(DiskOperation::kWrite), writes);
  EXPECT_EQ(disk_.count(DiskOperation::kSync), syncs);
}

TEST_F(LocalLog, SyncBeyondTheEndMeansTheEnd) {
  open();
  commit("one");
  EXPECT_TRUE(log_->sync(Position{1000}));
  EXPECT_EQ(log_->durable(), Position{1});
}

TEST_F(LocalLog, OneSyncWritesAllThatQueuedAsOneBatch) {
  open();
  commit("first");  // makes the file ready
  for (int i = 0; i < 50; ++i) append("entry");
  const auto writes = disk_.count(DiskOperation::kWrite);
  const auto syncs = disk_.count(DiskOperation::kSync);
  ASSERT_TRUE(log_->sync(log_->last()));
  EXPECT_EQ(disk_.count(DiskOperation::kWrite), writes + 1);
  EXPECT_EQ(disk_.count(DiskOperation::kSync), syncs + 1);
}

TEST_F(LocalLog, MemoryIsBoundedByWritingLargeBatchesUnasked) {
  open();
  const std::string entry(1000, 'e');
  for (int i = 0; i < 30; ++i) append(entry);
  EXPECT_EQ(log_->durable(), Position{0});
  EXPECT_GE(log_->held_bytes(), 30u * 1000);
  const auto scan = scan_log(disk_, options_, {});
  ASSERT_TRUE(scan);
  EXPECT_GE(scan->report.last.value, 15u) << "a full batch was written before anybody synced";
}

TEST_F(LocalLog, EntryThatJustFitsIsTakenOneByteMoreIsNot) {
  open();
  const std::size_t size_max = kBatchMax - kBatchHeaderSize - kEntryHeaderSize;
  append("small");
  const std::string largest(size_max, 'x');
  commit(largest);
  const Result<Position> refused = log_->append(std::string(size_max + 1, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooBig);
  EXPECT_EQ(log_->last(), Position{2});
  crash();
  open();
  EXPECT_EQ(seen_, (Entries{"small", largest}));
}

TEST_F(LocalLog, BeforeWriteRunsBeforeEachBatchAndForNothingElse) {
  std::vector<std::uint64_t> writes_before;
  options_.before_write = [&]() -> Status {
    writes_before.push_back(disk_.count(DiskOperation::kWrite));
    return {};
  };
  open();
  commit("one");
  append("two");
  ASSERT_EQ(writes_before.size(), 1u);
  const auto writes = disk_.count(DiskOperation::kWrite);
  ASSERT_TRUE(log_->sync(log_->last()));
  ASSERT_TRUE(log_->sync(log_->last()));
  EXPECT_EQ(writes_before.size(), 2u);
  EXPECT_EQ(writes_before.back(), writes) << "the batch was written before the hook";
}

TEST_F(LocalLog, TrimGivesSpaceBackAndKeepsTheRest) {
  open();
  const std::string entry(3000, 'e');
  Position middle;
  for (int i = 0; i < 40; ++i) {
    const Position position = commit(entry + std::to_string(i));
    if (i == 19) middle = position;
  }
  const std::uint64_t held = log_->held_bytes();
  ASSERT_TRUE(log_->trim(middle));
  EXPECT_LT(log_->held_bytes(), held);
  crash();
  open(middle);
  EXPECT_EQ(seen_.size(), 20u);
  EXPECT_EQ(seen_.back(), entry + "39");
}

TEST_F(LocalLog, TrimOfEverythingLeavesNothingHeld) {
  open();
  for (int i = 0; i < 30; ++i) commit(std::string(3000, 'e'));
  ASSERT_TRUE(log_->trim(log_->last()));
  EXPECT_EQ(log_->held_bytes(), 0u);
  EXPECT_EQ(commit("next"), Position{31});
  crash();
  open(Position{30});
  EXPECT_EQ(seen_, Entries{"next"});
}

TEST_F(LocalLog, TrimNeverReleasesWhatIsNotDurable) {
  open();
  commit("one");
  append("two");
  ASSERT_TRUE(log_->trim(Position{2}));
  ASSERT_TRUE(log_->sync(Position{2}));
  crash();
  open();
  EXPECT_EQ(seen_, (Entries{"one", "two"}));
}

TEST_F(LocalLog, FilesAreRecycledAndTheirNumberIsBounded) {
  open();
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) commit(std::string(3000, 'e'));
    ASSERT_TRUE(log_->trim(log_->last()));
    EXPECT_LE(log_files().size(), 6u);
  }
  // 1000 batches fill 63 files; few were made.
  EXPECT_LE(disk_.count(DiskOperation::kAllocate), 6u);
}

TEST_F(LocalLog, FullLogRefusesAppendsAndTakesThemAgainAfterTrim) {
  open();
  const std::string entry(4000, 'e');
  Result<Position> position = Position{};
  int taken = 0;
  for (; taken < 10000; ++taken) {
    position = log_->append(entry);
    if (!position) break;
    EXPECT_LE(log_->held_bytes(), log_->capacity_bytes());
    ASSERT_TRUE(log_->sync(*position));
  }
  ASSERT_FALSE(position);
  EXPECT_EQ(position.error().code, Code::kNoSpace);
  EXPECT_GE(log_->held_bytes(), log_->capacity_bytes() * 3 / 4) << "refused too early";
  EXPECT_EQ(seen_.size(), static_cast<std::size_t>(taken)) << "a refused entry was applied";
  ASSERT_TRUE(log_->trim(log_->last()));
  commit(entry);
}

TEST_F(LocalLog, FreezeShowsADurableEnd) {
  open();
  append("one");
  append("two");
  Position at_freeze, durable;
  ASSERT_TRUE(log_->freeze([&](Position position) {
    at_freeze = position;
    durable = log_->durable();
  }));
  EXPECT_EQ(at_freeze, Position{2});
  EXPECT_EQ(durable, Position{2});
  EXPECT_EQ(append("three"), Position{3});
}

TEST_F(LocalLog, FreezeWorksWithNothingAppended) {
  open(Position{41});
  Position at_freeze;
  ASSERT_TRUE(log_->freeze([&](Position position) { at_freeze = position; }));
  EXPECT_EQ(at_freeze, Position{41});
}

TEST_F(LocalLog, FormatRefusesALogThatIsThere) {
  const Status again = format_local_log(disk_, options_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kExists);
}

TEST_F(LocalLog, MissingFolderIsNotFound) {
  options_.directory = "store/nothing";
  const Status status = try_open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNotFound);
}

TEST_F(LocalLog, ReadOnlyReplaysAndChangesNothing) {
  open();
  commit("one");
  commit("two");
  crash();
  const auto before = image();
  options_.read_only = true;
  open();
  EXPECT_EQ(seen_, (Entries{"one", "two"}));
  const Result<Position> refused = log_->append("three");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReadOnly);
  EXPECT_TRUE(log_->sync(log_->last()));
  EXPECT_TRUE(log_->freeze([](Position) {}));
  EXPECT_FALSE(log_->trim(Position{2}));
  log_.reset();
  EXPECT_EQ(image(), before);
}

TEST_F(LocalLog, FirstFileHasItsBlocksBeforeTheFirstBatch) {
  EXPECT_EQ(disk_.count(DiskOperation::kAllocate), 1u);
  std::uint64_t zeros = 0;
  for (const auto& [path, bytes] : image()) zeros += bytes.size();
  EXPECT_EQ(zeros, kFileSize);
  open();
  const auto allocations = disk_.count(DiskOperation::kAllocate);
  commit("one");
  EXPECT_LE(disk_.count(DiskOperation::kAllocate), allocations + 1) << "only the next file's";
}

}  // namespace
}  // namespace kvsyncfs
