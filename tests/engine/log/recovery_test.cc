// What LocalLog makes of the files that a crash, a bad disk or a person left.
#include <random>

#include "engine/base/checksum.h"
#include "tests/engine/log/log_fixture.h"

namespace kvsyncfs {
namespace {

class LocalLogRecovery : public LocalLogTest {
 protected:
  void run_lives(std::mt19937& random) {
    Entries model;              // entry of position i + 1
    std::uint64_t applied = 0;  // a checkpoint's position
    for (int life = 0; life < 8; ++life) {
      open(Position{applied});
      ASSERT_EQ(log_->last().value, applied + seen_.size());
      for (std::size_t i = 0; i < seen_.size(); ++i) ASSERT_EQ(seen_[i], model[applied + i]);
      for (auto steps = random() % 120; steps > 0; --steps) {
        const std::string entry(random() % 6000, static_cast<char>(random()));
        if (log_->held_bytes() < log_->capacity_bytes() / 2) {
          append(entry);
          model.push_back(entry);
        }
        if (random() % 4 == 0) {
          ASSERT_TRUE(log_->sync({random() % (model.size() + 1)}));
        }
        if (random() % 20 == 0) {
          applied = std::max(applied, log_->durable().value);
          ASSERT_TRUE(log_->trim(Position{applied}));
        }
      }
      const std::uint64_t confirmed = log_->durable().value;
      const auto keep = random() % 3;
      crash([&](std::size_t) { return keep == 2 || (keep == 1 && random() % 2 == 0); });
      const auto scan = scan_log(disk_, options_, {});
      ASSERT_TRUE(scan) << describe(scan.error());
      const std::uint64_t left = std::max(scan->report.last.value, applied);
      ASSERT_GE(left, confirmed);
      ASSERT_LE(left, model.size());
      model.resize(left);
    }
  }
};

/// Size of header and payload of a batch of one entry.
std::size_t batch_size(std::string_view entry) {
  return kBatchHeaderSize + kEntryHeaderSize + entry.size();
}

TEST_F(LocalLogRecovery, SyncedEntriesSurviveUnsyncedOnesMayNot) {
  open();
  commit("one");
  append("two");
  crash();
  open();
  EXPECT_EQ(seen_, Entries{"one"});
  EXPECT_EQ(append("two again"), Position{2});
}

TEST_F(LocalLogRecovery, TornTailIsDropped) {
  const std::string last(5000, 'L');  // two pages
  open();
  commit("one");
  commit(last);
  log_.reset();
  const std::string path = written_file();
  const std::string whole = disk_.contents(path);
  const std::size_t start = kBatchUnit, end = start + batch_size(last);
  for (const char filler : {'\0', '\xff', 'L'}) {
    for (std::size_t cut = start; cut < end; ++cut) {
      std::string torn = whole;
      std::fill(torn.begin() + static_cast<std::ptrdiff_t>(cut),
                torn.begin() + static_cast<std::ptrdiff_t>(start + 2 * kBatchUnit), filler);
      if (std::string_view(torn).substr(0, end) == std::string_view(whole).substr(0, end)) continue;
      disk_.set_contents(path, torn);
      Entries found;
      const auto scan =
          scan_log(disk_, options_, [&](Position, std::string_view e) { found.emplace_back(e); });
      ASSERT_TRUE(scan) << "cut at " << cut << ": " << describe(scan.error());
      ASSERT_EQ(found, Entries{"one"}) << "cut at " << cut;
    }
  }
}

TEST_F(LocalLogRecovery, LogGoesOnBehindATornTail) {
  open();
  commit("one");
  commit("torn");
  log_.reset();
  const std::string path = written_file();
  std::string bytes = disk_.contents(path);
  bytes[kBatchUnit + batch_size("torn") - 1] ^= 1;
  disk_.set_contents(path, bytes);
  open();
  EXPECT_EQ(seen_, Entries{"one"});
  EXPECT_EQ(commit("two"), Position{2});
  EXPECT_EQ(commit("three"), Position{3});
  for (int i = 0; i < 3; ++i) {
    crash();
    open();
    EXPECT_EQ(seen_, (Entries{"one", "two", "three"}));
  }
}

TEST_F(LocalLogRecovery, TornBytesAreReported) {
  open();
  commit("one");
  commit("torn");
  log_.reset();
  EXPECT_EQ(scan_log(disk_, options_, {})->report.torn_bytes, 0u);
  const std::string path = written_file();
  std::string bytes = disk_.contents(path);
  bytes[kBatchUnit + batch_size("torn") - 1] ^= 1;
  disk_.set_contents(path, bytes);
  const auto scan = scan_log(disk_, options_, {});
  ASSERT_TRUE(scan);
  EXPECT_EQ(scan->report.torn_bytes, kBatchUnit);
  EXPECT_EQ(scan->report.first, Position{1});
  EXPECT_EQ(scan->report.last, Position{1});
  std::vector<std::string> told;
  options_.warn = [&](std::string_view line) { told.emplace_back(line); };
  open();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("4096 bytes"), std::string::npos) << told[0];
}

TEST_F(LocalLogRecovery, AnyFlippedByteInTheMiddleIsCorrupt) {
  open();
  for (const char* entry : {"one", "two", "three"}) commit(entry);
  log_.reset();
  const std::string path = written_file();
  const std::string whole = disk_.contents(path);
  for (std::size_t at = 0; at < batch_size("two"); ++at) {
    std::string bytes = whole;
    bytes[kBatchUnit + at] ^= 0x40;
    disk_.set_contents(path, bytes);
    const auto before = image();
    const Status status = try_open();
    ASSERT_FALSE(status) << "byte " << at;
    EXPECT_EQ(status.error().code, Code::kCorrupt);
    EXPECT_NE(status.error().detail.find("position 2"), std::string::npos) << status.error().detail;
    EXPECT_TRUE(seen_.empty()) << "applied entries of a log that it refused";
    ASSERT_EQ(image(), before);
  }
}

TEST_F(LocalLogRecovery, DamagedFirstBatchIsCorruptWhereALaterOneProvesIt) {
  open();
  for (const char* entry : {"one", "two"}) commit(entry);
  log_.reset();
  const std::string path = written_file();
  std::string bytes = disk_.contents(path);
  bytes[kBatchHeaderSize] ^= 1;
  disk_.set_contents(path, bytes);
  const Status status = try_open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCorrupt);
}

TEST_F(LocalLogRecovery, MissingFileInTheMiddleIsCorrupt) {
  open();
  for (int i = 0; i < 45; ++i) commit(std::string(3000, 'e'));
  crash();
  const auto scan = scan_log(disk_, options_, {});
  ASSERT_TRUE(scan);
  ASSERT_GE(scan->files.size(), 3u);
  ASSERT_GT(scan->files[2].used_bytes, 0u);
  ASSERT_TRUE(disk_.remove(log_file_path(options_.directory, scan->files[1].generation)));
  const Status status = try_open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCorrupt);
}

TEST_F(LocalLogRecovery, JunkBehindTheEndIsNotTheLog) {
  open();
  commit("one");
  log_.reset();
  const std::string path = written_file();
  std::string bytes = disk_.contents(path);
  std::mt19937 random(7);
  for (std::size_t at = kBatchUnit; at < bytes.size(); ++at)
    bytes[at] = static_cast<char>(random());
  bytes += "and a tail that is no whole page";
  disk_.set_contents(path, bytes);
  open();
  EXPECT_EQ(seen_, Entries{"one"});
  commit("two");
  crash();
  open();
  EXPECT_EQ(seen_, (Entries{"one", "two"}));
}

/// A batch copied to another place, another file or another volume is not taken for the next one.
TEST_F(LocalLogRecovery, BatchAtAWrongPlaceIsNotTheLog) {
  open();
  commit("one");
  log_.reset();
  const std::string path = written_file();
  const std::string whole = disk_.contents(path);
  std::string payload = whole.substr(0, batch_size("one"));
  const auto put = [&](BatchHeader header) {
    header.payload_bytes = payload.size() - kBatchHeaderSize;
    header.entry_count = 1;
    std::string batch = payload;
    seal_batch(header, {reinterpret_cast<std::byte*>(batch.data()), batch.size()});
    std::string bytes = whole;
    bytes.replace(kBatchUnit, batch.size(), batch);
    disk_.set_contents(path, bytes);
  };
  BatchHeader next = *peek_batch(as_bytes(whole));
  next.file_offset = kBatchUnit;
  next.first = Position{2};
  next.durable = Position{1};
  const auto entries = [&] { return scan_log(disk_, options_, {})->report.last.value; };
  put(next);
  ASSERT_EQ(entries(), 2u)
      << "the batch is right, so that the wrong ones below differ in one thing";
  for (int wrong = 0; wrong < 4; ++wrong) {
    BatchHeader header = next;
    if (wrong == 0) header.generation += 1;
    if (wrong == 1) header.volume_tag += 1;
    if (wrong == 2) header.file_offset += kBatchUnit;
    if (wrong == 3) header.first = Position{1}, header.durable = Position{0};
    put(header);
    EXPECT_EQ(entries(), 1u) << wrong;
  }
}

class LocalLogNewestFile : public LocalLogTest,
                           public ::testing::WithParamInterface<std::size_t> {};

TEST_P(LocalLogNewestFile, WithoutABatchIsNoHindrance) {
  open();
  commit("one");
  log_.reset();
  disk_.set_contents(log_file_path(options_.directory, 0x99), std::string(GetParam(), '\0'));
  open();
  EXPECT_EQ(seen_, Entries{"one"});
  commit("two");
  crash();
  open();
  EXPECT_EQ(seen_, (Entries{"one", "two"}));
}
INSTANTIATE_TEST_SUITE_P(Sizes, LocalLogNewestFile,
                         ::testing::Values(0, 1, 63, 64, 4095, 4096, 10240, 65536, 100000));

TEST_F(LocalLogRecovery, FolderWithOtherNamesIsNoHindrance) {
  open();
  commit("one");
  log_.reset();
  for (const char* name : {"README", "0000000000000001.log~", "zzzzzzzzzzzzzzzz.log", "1.log"})
    disk_.set_contents(options_.directory + "/" + name, "not a log");
  open();
  EXPECT_EQ(seen_, Entries{"one"});
}

TEST_F(LocalLogRecovery, HalfMadeNextFileIsMadeAgain) {
  open();
  commit("one");
  log_.reset();
  disk_.set_contents(options_.directory + "/next", std::string(100, 'n'));
  open();
  for (int i = 0; i < 40; ++i) commit(std::string(3000, 'e'));
  crash();
  open();
  EXPECT_EQ(seen_.size(), 41u);
}

TEST_F(LocalLogRecovery, OldBatchesOfRecycledFilesAreIgnored) {
  open();
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) commit(std::string(3000, 'e'));
    ASSERT_TRUE(log_->trim(log_->last()));
  }
  const Position trimmed = log_->last();
  commit("new");
  crash();
  open(trimmed);
  EXPECT_EQ(seen_, Entries{"new"});
  EXPECT_EQ(log_->last().value, trimmed.value + 1);
}

/// Two batches were written without a sync, only the second reached the disk: no damage, a tear.
/// And the second stays out when the log grows again to where it lies.
TEST_F(LocalLogRecovery, BatchBehindATearStaysOut) {
  open();
  commit("one");
  const std::string entry(8000, 'e');
  for (int i = 0; i < 5; ++i) append(entry);  // fills two batches of 16 KiB
  const std::string path = written_file();
  const auto first_page = kBatchUnit / 512;
  const std::size_t batch_sectors = 4 * first_page;
  crash([&](std::size_t sector) { return sector >= batch_sectors; });
  open();
  EXPECT_EQ(seen_, Entries{"one"});
  const std::string other(8000, 'o');
  for (int i = 0; i < 2; ++i) append(other);
  ASSERT_TRUE(log_->sync(log_->last()));
  crash();
  open();
  EXPECT_EQ(seen_, (Entries{"one", other, other}));
}

TEST_F(LocalLogRecovery, LogThatStartsTooLateIsCorrupt) {
  open(Position{10});
  commit("eleven");
  crash();
  const Status status = try_open(Position{9});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCorrupt);
  open(Position{10});
  EXPECT_EQ(seen_, Entries{"eleven"});
}

TEST_F(LocalLogRecovery, LogBehindTheCatalogGoesOnAfterTheCatalog) {
  open();
  commit("one");
  crash();
  open(Position{5});
  EXPECT_TRUE(seen_.empty());
  EXPECT_EQ(log_->last(), Position{5});
  EXPECT_EQ(commit("six"), Position{6});
  crash();
  open(Position{5});
  EXPECT_EQ(seen_, Entries{"six"});
}

/// The process was killed, the machine lives: what it wrote and did not sync is replayed, so it
/// must not get lost in a later power cut.
TEST_F(LocalLogRecovery, ReplayedEntriesAreDurable) {
  open();
  const std::string entry(8000, 'e');
  for (int i = 0; i < 4; ++i) append(entry);
  open();
  const std::size_t replayed = seen_.size();
  ASSERT_GT(replayed, 0u);
  EXPECT_EQ(log_->durable(), log_->last());
  crash();
  open();
  EXPECT_EQ(seen_.size(), replayed);
}

TEST_F(LocalLogRecovery, BatchOfANewerVersionIsRefused) {
  open();
  commit("one");
  log_.reset();
  const std::string path = written_file();
  std::string bytes = disk_.contents(path);
  bytes[8] = 2;  // version
  const std::string_view checked = std::string_view(bytes).substr(8, batch_size("one") - 8);
  const std::uint32_t checksum = crc32c(as_bytes(checked));
  for (std::size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>(checksum >> (8 * i));
  disk_.set_contents(path, bytes);
  const Status status = try_open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNewerFormat);
}

/// Many lives in a row, each ended by a power cut that keeps a random part of what was not synced:
/// the log is always a prefix of what was appended, and no shorter than what sync confirmed.
TEST_F(LocalLogRecovery, AnyCrashLeavesAPrefixWithAllThatWasSynced) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ASSERT_NO_FATAL_FAILURE(run_lives(random));
    for (const std::string& path : log_files()) ASSERT_TRUE(disk_.remove(path));
    ASSERT_TRUE(format_local_log(disk_, options_));
  }
}

}  // namespace
}  // namespace kvsyncfs
