#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "engine/base/ids.h"
#include "engine/env/real.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

std::unique_ptr<File> open_ok(Disk& disk, const std::string& path, OpenMode mode, bool direct) {
  auto file = disk.open(path, mode, direct);
  EXPECT_TRUE(file) << (file ? "" : describe(file.error()));
  return std::move(*file);
}

AlignedBuffer pattern(std::size_t size, int first = 1) {
  AlignedBuffer buffer(size);
  for (std::size_t i = 0; i < size; ++i) {
    buffer.data()[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i % 251);
  }
  return buffer;
}

AlignedBuffer read_all(File& file, std::uint64_t offset, std::size_t size, std::size_t expected) {
  AlignedBuffer out(size);
  const auto count = file.read_at(offset, out.bytes());
  EXPECT_TRUE(count);
  EXPECT_EQ(count ? *count : 0, expected);
  return out;
}

void expect_same(Bytes a, Bytes b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

template <typename R>
void expect_error(const R& result, Code code, const std::string& named) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << describe(result.error());
  EXPECT_NE(result.error().detail.find(named), std::string::npos) << result.error().detail;
}

/// Every rule holds with and without direct I/O, and where the file system may not offer it.
struct Place {
  std::string parent;
  bool direct;
};

class RealDisk : public ::testing::TestWithParam<Place> {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  std::unique_ptr<File> create(const std::string& name) {
    return open_ok(*disk_, at(name), OpenMode::kCreateNew, GetParam().direct);
  }

  TempFolder folder_{GetParam().parent};
  std::unique_ptr<Disk> disk_ = make_real_disk();
};

INSTANTIATE_TEST_SUITE_P(Places, RealDisk,
                         ::testing::Values(Place{"/var/tmp", false}, Place{"/var/tmp", true},
                                           Place{"/dev/shm", true}),
                         [](const auto& p) {
                           return std::string(p.param.parent == "/dev/shm" ? "Memory" : "Local") +
                                  (p.param.direct ? "Direct" : "Cached");
                         });

TEST_P(RealDisk, CreateNewRefusesAFileThatIsThere) {
  create("a");
  expect_error(disk_->open(at("a"), OpenMode::kCreateNew, GetParam().direct), Code::kExists,
               at("a"));
}

TEST_P(RealDisk, OpenWithoutCreateNeedsTheFile) {
  for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReadWrite}) {
    expect_error(disk_->open(at("none"), mode, GetParam().direct), Code::kNotFound, at("none"));
  }
  EXPECT_FALSE(*disk_->exists(at("none")));
}

TEST_P(RealDisk, CreateOrOpenKeepsWhatIsThere) {
  const AlignedBuffer page = pattern(kPageSize);
  ASSERT_TRUE(create("a")->write_at(0, page.bytes()));
  const auto again = open_ok(*disk_, at("a"), OpenMode::kCreateOrOpen, GetParam().direct);
  expect_same(read_all(*again, 0, kPageSize, kPageSize).bytes(), page.bytes());
}

TEST_P(RealDisk, PiecesAreWrittenBackToBack) {
  const auto file = create("a");
  const AlignedBuffer data = pattern(1024 * kPageSize);
  std::vector<Bytes> pieces;
  for (std::size_t i = 0; i < 1024; ++i) {
    pieces.push_back(data.bytes().subspan(i * kPageSize, kPageSize));
  }
  ASSERT_TRUE(file->write_at(kPageSize, pieces));
  expect_same(read_all(*file, kPageSize, data.size(), data.size()).bytes(), data.bytes());
  EXPECT_EQ(*file->size(), data.size() + kPageSize);
  EXPECT_TRUE(file->sync());
}

TEST_P(RealDisk, EmptyPiecesWriteNothing) {
  const auto file = create("a");
  const AlignedBuffer page = pattern(kPageSize);
  const std::vector<Bytes> pieces = {{}, page.bytes(), {}};
  ASSERT_TRUE(file->write_at(0, pieces));
  ASSERT_TRUE(file->write_at(0, std::span<const Bytes>{}));
  EXPECT_EQ(*file->size(), kPageSize);
}

TEST_P(RealDisk, AReadStopsAtTheEnd) {
  const auto file = create("a");
  const AlignedBuffer data = pattern(2 * kPageSize);
  ASSERT_TRUE(file->write_at(0, data.bytes()));
  ASSERT_TRUE(file->truncate(kPageSize + 100));
  const AlignedBuffer got = read_all(*file, 0, 4 * kPageSize, kPageSize + 100);
  expect_same(got.bytes().first(kPageSize + 100), data.bytes().first(kPageSize + 100));
  read_all(*file, 4 * kPageSize, kPageSize, 0);
}

TEST_P(RealDisk, AllocateSetsTheSizeAndKeepsTheBytes) {
  const auto file = create("a");
  const AlignedBuffer page = pattern(kPageSize);
  ASSERT_TRUE(file->write_at(0, page.bytes()));
  ASSERT_TRUE(file->allocate(3 * kPageSize));
  EXPECT_EQ(*file->size(), 3 * kPageSize);
  const AlignedBuffer got = read_all(*file, 0, 3 * kPageSize, 3 * kPageSize);
  expect_same(got.bytes().first(kPageSize), page.bytes());
  for (const std::byte b : got.bytes().subspan(kPageSize)) ASSERT_EQ(b, std::byte{0});
  ASSERT_TRUE(file->allocate(kPageSize));
  EXPECT_EQ(*file->size(), 3 * kPageSize) << "allocate never cuts";
}

TEST_P(RealDisk, RenameReplaces) {
  create("a");
  const AlignedBuffer page = pattern(kPageSize);
  ASSERT_TRUE(create("b")->write_at(0, page.bytes()));
  ASSERT_TRUE(disk_->rename(at("b"), at("a")));
  ASSERT_TRUE(disk_->sync_directory(folder_.path()));
  EXPECT_FALSE(*disk_->exists(at("b")));
  EXPECT_EQ(*disk_->size_of(at("a")), kPageSize);
  expect_error(disk_->rename(at("b"), at("c")), Code::kNotFound, at("b"));
}

TEST_P(RealDisk, ListIsSortedAndWithoutDots) {
  for (const char* name : {"b", "a", ".c", "B"}) create(name);
  ASSERT_TRUE(disk_->make_directory(at("d")));
  EXPECT_EQ(*disk_->list(folder_.path()), (std::vector<std::string>{".c", "B", "a", "b", "d"}));
  expect_error(disk_->list(at("none")), Code::kNotFound, at("none"));
}

TEST_P(RealDisk, RemovedFilesAreGone) {
  create("a");
  ASSERT_TRUE(disk_->remove(at("a")));
  EXPECT_FALSE(*disk_->exists(at("a")));
  expect_error(disk_->remove(at("a")), Code::kNotFound, at("a"));
  expect_error(disk_->size_of(at("a")), Code::kNotFound, at("a"));
}

TEST_P(RealDisk, DirectoriesAreToldFromFiles) {
  create("a");
  ASSERT_TRUE(disk_->make_directory(at("d")));
  expect_error(disk_->make_directory(at("d")), Code::kExists, at("d"));
  EXPECT_TRUE(*disk_->is_directory(at("d")));
  EXPECT_FALSE(*disk_->is_directory(at("a")));
  EXPECT_FALSE(*disk_->is_directory(at("none")));
  EXPECT_FALSE(*disk_->exists(at("a/below a file")));
  ASSERT_TRUE(disk_->remove_directory(at("d")));
  EXPECT_FALSE(*disk_->exists(at("d")));
}

TEST_P(RealDisk, NewFilesAreForTheirOwnerOnly) {
  create("a");
  ASSERT_TRUE(disk_->make_directory(at("d")));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(at("a")).permissions() & perms(077), perms::none);
  EXPECT_EQ(std::filesystem::status(at("d")).permissions() & perms(077), perms::none);
}

TEST(RealDiskErrors, AFullDiskIsNoSpaceAndNamesTheFile) {
  const auto file = open_ok(*make_real_disk(), "/dev/full", OpenMode::kReadWrite, false);
  const AlignedBuffer page = pattern(kPageSize);
  expect_error(file->write_at(0, page.bytes()), Code::kNoSpace, "/dev/full");
}

TEST(RealDiskErrors, SpaceNamesTheMissingPath) {
  expect_error(make_real_disk()->space("/nonexistent/x"), Code::kNotFound, "/nonexistent/x");
}

TEST(RealDiskErrors, SpaceIsWithinTheTotal) {
  const auto space = make_real_disk()->space("/");
  ASSERT_TRUE(space);
  EXPECT_GT(space->total_bytes, 0u);
  EXPECT_LE(space->available_bytes, space->total_bytes);
}

TEST(RealClock, BootTimeNeverGoesBack) {
  const auto clock = make_real_clock();
  std::uint64_t last = clock->boot_ns();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t now = clock->boot_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(RealClock, NowIsWallClockTime) {
  const Timestamp now = make_real_clock()->now();
  EXPECT_GT(now.seconds, 1'700'000'000);
  EXPECT_LT(now.nanoseconds, 1'000'000'000u);
}

TEST(RealRandom, DoesNotRepeat) {
  const auto random = make_real_random();
  std::vector<std::uint64_t> drawn(1000);
  for (auto& bits : drawn) bits = random->next();
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
}

}  // namespace
}  // namespace kvsyncfs
