// The simulated disk itself: a test that stands on it is worth as much as its faults are real.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/sim/sim_disk.h"

namespace kvsyncfs {
namespace {

std::unique_ptr<File> open_file(Disk& disk, const std::string& path,
                                OpenMode mode = OpenMode::kCreateOrOpen) {
  auto file = disk.open(path, mode);
  EXPECT_TRUE(file) << path;
  return file ? std::move(*file) : nullptr;
}

std::string content(Disk& disk, const std::string& path) {
  auto file = disk.open(path, OpenMode::kRead);
  if (!file) return "-";
  std::string out((*file)->size().value(), '\0');
  EXPECT_TRUE((*file)->read_at(0, {reinterpret_cast<std::byte*>(out.data()), out.size()}));
  return out;
}

void make_durable(SimDisk& disk, const std::string& path, const std::string& bytes) {
  auto file = open_file(disk, path);
  ASSERT_TRUE(file->write_at(0, as_bytes(bytes)));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(disk.sync_directory("/"));
}

TEST(SimDisk, ReadsBackWhatWasWritten) {
  SimDisk disk;
  auto file = open_file(disk, "/a");
  const std::string bytes(10'000, 'x');
  ASSERT_TRUE(file->write_at(3000, as_bytes(bytes)));
  EXPECT_EQ(content(disk, "/a"), std::string(3000, '\0') + bytes);
  ASSERT_TRUE(file->truncate(4000));
  ASSERT_TRUE(file->allocate(6000));
  ASSERT_TRUE(file->allocate(100));
  EXPECT_EQ(content(disk, "/a"),
            std::string(3000, '\0') + std::string(1000, 'x') + std::string(2000, '\0'));
}

TEST(SimDisk, PiecesAreWrittenBackToBack) {
  SimDisk disk;
  const Bytes pieces[] = {as_bytes("ab"), as_bytes(""), as_bytes("cde")};
  ASSERT_TRUE(open_file(disk, "/a")->write_at(1, pieces));
  EXPECT_EQ(content(disk, "/a"), std::string("\0abcde", 6));
}

TEST(SimDisk, SyncedBytesSurviveEveryCrash) {
  SimDisk disk;
  const std::string bytes(20'000, 'x');
  make_durable(disk, "/a", bytes);
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    ASSERT_EQ(content(*disk.after_crash(seed), "/a"), bytes);
}

TEST(SimDisk, EachUnsyncedByteIsOldOrNewAndAllFatesOccur) {
  SimDisk disk;
  make_durable(disk, "/a", std::string(16'384, 'o'));
  auto file = open_file(disk, "/a");
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(8192, 'n'))));
  bool all = false, none = false, mixed = false, torn = false;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::string left = content(*disk.after_crash(seed), "/a");
    ASSERT_EQ(left.size(), 16'384u);
    ASSERT_EQ(left.find_first_not_of("on"), std::string::npos);
    ASSERT_EQ(left.substr(8192), std::string(8192, 'o'));
    const auto kept = std::count(left.begin(), left.end(), 'n');
    all |= kept == 8192;
    none |= kept == 0;
    mixed |= kept > 0 && kept < 8192;
    torn |= kept % 512 != 0;
  }
  EXPECT_TRUE(all && none && mixed && torn);
}

TEST(SimDisk, LaterWritesMaySurviveEarlierOnes) {
  SimDisk disk;
  make_durable(disk, "/a", std::string(8192, 'o'));
  auto file = open_file(disk, "/a");
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(4096, '1'))));
  ASSERT_TRUE(file->write_at(4096, as_bytes(std::string(4096, '2'))));
  bool reordered = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string left = content(*disk.after_crash(seed), "/a");
    reordered |= left == std::string(4096, 'o') + std::string(4096, '2');
  }
  EXPECT_TRUE(reordered);
}

TEST(SimDisk, GrowthMayBeLostOrComeWithoutItsBytes) {
  SimDisk disk;
  make_durable(disk, "/a", "");
  ASSERT_TRUE(open_file(disk, "/a")->write_at(0, as_bytes(std::string(4096, 'n'))));
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    seen.insert(content(*disk.after_crash(seed), "/a"));
  EXPECT_TRUE(seen.contains(""));
  EXPECT_TRUE(seen.contains(std::string(4096, '\0')));
  EXPECT_TRUE(seen.contains(std::string(4096, 'n')));
}

TEST(SimDisk, TruncatedBytesNeverComeBackBehindZeros) {
  SimDisk disk;
  make_durable(disk, "/a", std::string(5000, 'o'));
  auto file = open_file(disk, "/a");
  ASSERT_TRUE(file->truncate(1000));
  ASSERT_TRUE(file->truncate(5000));
  EXPECT_EQ(content(disk, "/a"), std::string(1000, 'o') + std::string(4000, '\0'));
}

TEST(SimDisk, FileSyncMakesNoNameDurable) {
  SimDisk disk;
  auto file = open_file(disk, "/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("x")));
  ASSERT_TRUE(file->sync());
  bool lost = false, kept = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::string left = content(*disk.after_crash(seed), "/a");
    ASSERT_TRUE(left == "-" || left == "x");
    (left == "-" ? lost : kept) = true;
  }
  EXPECT_TRUE(lost && kept);
  ASSERT_TRUE(disk.sync_directory("/"));
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    ASSERT_EQ(content(*disk.after_crash(seed), "/a"), "x");
}

TEST(SimDisk, RenamedFileHasOneNameAndTheOldTargetIsWhole) {
  SimDisk disk;
  make_durable(disk, "/new", "new");
  make_durable(disk, "/target", "old");
  ASSERT_TRUE(disk.rename("/new", "/middle"));
  ASSERT_TRUE(disk.rename("/middle", "/target"));
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto left = disk.after_crash(seed);
    const std::string target = content(*left, "/target");
    const int names = (content(*left, "/new") == "new" ? 1 : 0) +
                      (content(*left, "/middle") == "new" ? 1 : 0) + (target == "new" ? 1 : 0);
    ASSERT_EQ(names, 1);
    seen.insert(target);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"new", "old"}));
}

TEST(SimDisk, NamesSurviveInOrderAndOutOfIt) {
  SimDisk disk;
  ASSERT_TRUE(disk.make_directory("/d"));
  ASSERT_TRUE(disk.sync_directory("/"));
  for (const char* name : {"/d/1", "/d/2", "/d/3"}) open_file(disk, name);
  std::set<std::vector<std::string>> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) seen.insert(*disk.after_crash(seed)->list("/d"));
  EXPECT_EQ(seen.size(), 8u);  // every subset
}

TEST(SimDisk, WhatIsInALostFolderIsLost) {
  SimDisk disk;
  ASSERT_TRUE(disk.make_directory("/d"));
  ASSERT_TRUE(open_file(disk, "/d/a")->sync());
  ASSERT_TRUE(disk.sync_directory("/d"));
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto left = disk.after_crash(seed);
    ASSERT_EQ(*left->exists("/d"), *left->exists("/d/a"));
  }
}

TEST(SimDisk, RemovalIsDurableAfterSyncDirectory) {
  SimDisk disk;
  make_durable(disk, "/a", "x");
  ASSERT_TRUE(disk.remove("/a"));
  EXPECT_FALSE(*disk.exists("/a"));
  bool back = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) back |= *disk.after_crash(seed)->exists("/a");
  EXPECT_TRUE(back);
  ASSERT_TRUE(disk.sync_directory("/"));
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    ASSERT_FALSE(*disk.after_crash(seed)->exists("/a"));
}

TEST(SimDisk, StopsAtAChangeAndStaysStopped) {
  SimDisk disk;
  make_durable(disk, "/a", std::string(4096, 'o'));
  auto file = open_file(disk, "/a");
  disk.stop_at(disk.changes() + 2);
  ASSERT_TRUE(file->write_at(0, as_bytes("1")));
  EXPECT_EQ(file->write_at(0, as_bytes(std::string(4096, '2'))).error().code, Code::kIo);
  EXPECT_TRUE(disk.stopped());
  std::byte byte;
  EXPECT_EQ(file->read_at(0, {&byte, 1}).error().code, Code::kIo);
  EXPECT_EQ(file->sync().error().code, Code::kIo);
  EXPECT_EQ(disk.list("/").error().code, Code::kIo);
  EXPECT_EQ(disk.open("/b", OpenMode::kCreateNew).error().code, Code::kIo);
  std::set<char> first;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    first.insert(content(*disk.after_crash(seed), "/a")[0]);
  EXPECT_EQ(first, (std::set<char>{'1', '2', 'o'}));  // the change that failed may have happened
  disk.crash(1);
  EXPECT_FALSE(disk.stopped());
  EXPECT_EQ(file->sync().error().code, Code::kIo);  // a file of the former life
  EXPECT_TRUE(open_file(disk, "/a")->sync());
}

TEST(SimDisk, StoppedSyncConfirmsNothing) {
  SimDisk disk;
  make_durable(disk, "/a", "o");
  auto file = open_file(disk, "/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("n")));
  disk.stop_at(disk.changes() + 1);
  EXPECT_FALSE(file->sync());
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    seen.insert(content(*disk.after_crash(seed), "/a"));
  EXPECT_EQ(seen, (std::set<std::string>{"n", "o"}));
}

TEST(SimDisk, KillLosesNothing) {
  SimDisk disk;
  ASSERT_TRUE(open_file(disk, "/a")->write_at(0, as_bytes("x")));
  disk.kill();
  EXPECT_EQ(content(disk, "/a"), "x");
}

TEST(SimDisk, FailedChangeHasNoEffectAndFailsOnce) {
  SimDisk disk;
  auto file = open_file(disk, "/a");
  disk.fail_change(disk.changes() + 1, Code::kNoSpace);
  EXPECT_EQ(file->write_at(0, as_bytes("x")).error().code, Code::kNoSpace);
  EXPECT_EQ(content(disk, "/a"), "");
  EXPECT_TRUE(file->write_at(0, as_bytes("y")));
  disk.fail_change(disk.changes() + 1, Code::kIo);
  EXPECT_EQ(disk.rename("/a", "/b").error().code, Code::kIo);
  EXPECT_EQ(content(disk, "/a"), "y");
}

TEST(SimDisk, FailedReadFailsOnce) {
  SimDisk disk;
  make_durable(disk, "/a", "x");
  auto file = open_file(disk, "/a");
  disk.fail_read(2);
  std::byte byte;
  EXPECT_TRUE(file->read_at(0, {&byte, 1}));
  EXPECT_EQ(file->read_at(0, {&byte, 1}).error().code, Code::kIo);
  EXPECT_TRUE(file->read_at(0, {&byte, 1}));
}

TEST(SimDisk, FailedSyncLosesItsWritesForGood) {
  SimDisk disk;
  make_durable(disk, "/a", "old");
  auto file = open_file(disk, "/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("new")));
  disk.fail_change(disk.changes() + 1, Code::kIo);
  EXPECT_FALSE(file->sync());
  EXPECT_EQ(content(disk, "/a"), "new");
  EXPECT_TRUE(file->sync());
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    ASSERT_EQ(content(*disk.after_crash(seed), "/a"), "old");
}

TEST(SimDisk, FlippedBitsStay) {
  SimDisk disk;
  make_durable(disk, "/a", "abc");
  disk.flip("/a", 1, 0x20);
  EXPECT_EQ(content(disk, "/a"), "aBc");
  disk.crash(1);
  EXPECT_EQ(content(disk, "/a"), "aBc");
}

TEST(SimDisk, CapacityIsNoSpace) {
  SimDisk disk(16 * kPageSize);
  auto file = open_file(disk, "/a");
  EXPECT_TRUE(file->allocate(10 * kPageSize));
  EXPECT_EQ(open_file(disk, "/b")->allocate(7 * kPageSize).error().code, Code::kNoSpace);
  EXPECT_EQ(file->write_at(15 * kPageSize, as_bytes(std::string(5000, 'x'))).error().code,
            Code::kNoSpace);
  EXPECT_EQ(disk.space("/")->available_bytes, 6 * kPageSize);
  ASSERT_TRUE(disk.remove("/a"));
  EXPECT_EQ(disk.space("/")->available_bytes, 16 * kPageSize);
}

TEST(SimDisk, DirectFilesWantWholePages) {
  SimDisk disk;
  auto file = std::move(*disk.open("/a", OpenMode::kCreateNew, true));
  AlignedBuffer page(kPageSize);
  EXPECT_TRUE(file->write_at(kPageSize, page.bytes()));
  EXPECT_FALSE(file->write_at(100, page.bytes()));
  EXPECT_FALSE(file->write_at(0, page.bytes().first(512)));
  EXPECT_FALSE(file->read_at(0, page.bytes().subspan(1)));
}

TEST(SimDisk, ErrorsAreThoseOfTheContract) {
  SimDisk disk;
  ASSERT_TRUE(disk.make_directory("/d"));
  open_file(disk, "/d/a", OpenMode::kCreateNew);
  EXPECT_EQ(disk.open("/d/a", OpenMode::kCreateNew).error().code, Code::kExists);
  EXPECT_EQ(disk.open("/d/b", OpenMode::kRead).error().code, Code::kNotFound);
  EXPECT_EQ(disk.open("/e/b", OpenMode::kCreateNew).error().code, Code::kNotFound);
  EXPECT_EQ(disk.make_directory("/d").error().code, Code::kExists);
  EXPECT_EQ(disk.remove_directory("/d").error().code, Code::kNotEmpty);
  EXPECT_EQ(disk.remove("/x").error().code, Code::kNotFound);
  EXPECT_EQ(disk.rename("/x", "/y").error().code, Code::kNotFound);
  EXPECT_EQ(disk.list("/x").error().code, Code::kNotFound);
  EXPECT_EQ(disk.size_of("/x").error().code, Code::kNotFound);
  EXPECT_EQ(*disk.list("/d/"), std::vector<std::string>{"a"});
  EXPECT_TRUE(*disk.is_directory("/d"));
  EXPECT_FALSE(*disk.is_directory("/d/a"));
}

TEST(SimDisk, OpenFilesOutliveTheirNames) {
  SimDisk disk;
  make_durable(disk, "/a", "x");
  auto file = open_file(disk, "/a");
  ASSERT_TRUE(disk.remove("/a"));
  EXPECT_TRUE(file->write_at(1, as_bytes("y")));
  std::byte bytes[2];
  EXPECT_EQ(*file->read_at(0, bytes), 2u);
}

TEST(SimDisk, SameSeedLeavesTheSame) {
  const auto history = [](SimDisk& disk) {
    ASSERT_TRUE(disk.make_directory("/d"));
    for (int i = 0; i < 20; ++i) {
      auto file = open_file(disk, "/d/" + std::to_string(i % 7));
      ASSERT_TRUE(file->write_at(static_cast<std::uint64_t>(i) * 700,
                                 as_bytes(std::string(3000, static_cast<char>('a' + i)))));
      if (i % 3 == 0) {
        ASSERT_TRUE(file->sync());
      }
      if (i == 10) {
        ASSERT_TRUE(disk.sync_directory("/"));
      }
      if (i % 8 == 0) {
        ASSERT_TRUE(disk.sync_directory("/d"));
      }
    }
  };
  SimDisk a, b;
  history(a);
  history(b);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto left = a.after_crash(seed), other = b.after_crash(seed);
    ASSERT_EQ(*left->list("/"), *other->list("/"));
    const auto names = left->list("/d");
    if (!names) continue;
    for (const std::string& name : *names)
      ASSERT_EQ(content(*left, "/d/" + name), content(*other, "/d/" + name));
  }
  const std::string before = content(*a.after_crash(7), "/d/1");
  a.crash(7);
  EXPECT_EQ(content(a, "/d/1"), before);
}

}  // namespace
}  // namespace kvsyncfs
