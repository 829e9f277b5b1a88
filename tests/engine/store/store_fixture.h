// A store in a folder of its own, with an engine that gives ids and remembers seals.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "engine/store/segment_store.h"
#include "tests/engine/store/faulty_disk.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {

inline std::string random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

/// Memory at a page boundary, as the write buffer's frames are.
inline AlignedBuffer aligned_bytes(const std::string& content) {
  AlignedBuffer buffer(round_up(std::max<std::size_t>(content.size(), 1), kPageSize));
  std::copy(as_bytes(content).begin(), as_bytes(content).end(), buffer.data());
  return buffer;
}

class StoreTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSegmentSize = 64 * kPageSize;

  void SetUp() override {
    options_.directory = folder_.path() + "/segments";
    options_.volume_tag = 0x1122334455667788;
    options_.size_bytes = 64 * kSegmentSize;
    options_.segment_size_bytes = kSegmentSize;
    options_.open_segment = [this]() -> Result<SegmentId> {
      std::lock_guard lock(mutex_);
      if (fail_open_segment_) return Error(Code::kShutdown, "log");
      const SegmentId id{next_id_++};
      known_[id] = {id, false, 0};
      return id;
    };
    options_.seal_segment = [this](SegmentId id, std::uint64_t length) -> Status {
      std::lock_guard lock(mutex_);
      known_[id] = {id, true, length};
      return {};
    };
  }

  void make() {
    ASSERT_TRUE(SegmentStore::format(disk_, options_));
    reopen();
  }

  /// As after a crash of the process: nothing is closed properly.
  void reopen() {
    store_.reset();
    auto opened = SegmentStore::open(disk_, options_);
    ASSERT_TRUE(opened) << describe(opened.error());
    store_ = std::move(*opened);
  }

  std::vector<KnownSegment> known() {
    std::lock_guard lock(mutex_);
    std::vector<KnownSegment> all;
    for (const auto& [id, segment] : known_) all.push_back(segment);
    return all;
  }

  std::vector<Placed> append(const std::vector<std::string>& runs, Stream stream = Stream::kUser) {
    std::vector<Bytes> bytes;
    for (const std::string& run : runs) bytes.push_back(as_bytes(run));
    auto placed = store_->append(stream, bytes);
    EXPECT_TRUE(placed) << describe(placed.error());
    return placed ? *placed : std::vector<Placed>{};
  }

  /// One run in one part.
  Placed append_one(const std::string& bytes) {
    const auto placed = append({bytes});
    EXPECT_EQ(placed.size(), 1u);
    return placed.empty() ? Placed{} : placed[0];
  }

  Result<std::string> read(const Placed& at) {
    std::string out(at.length, '?');
    KVSYNCFS_TRY(store_->read(at.segment, at.segment_offset,
                              {reinterpret_cast<std::byte*>(out.data()), out.size()}));
    return out;
  }

  /// All runs come back from where the parts are.
  void expect_content(const std::vector<std::string>& runs, const std::vector<Placed>& placed) {
    std::vector<std::size_t> seen(runs.size());
    for (const Placed& p : placed) {
      ASSERT_LT(p.run, runs.size());
      EXPECT_EQ(p.run_offset, seen[p.run]);
      seen[p.run] += p.length;
      const auto content = read(p);
      ASSERT_TRUE(content) << describe(content.error());
      EXPECT_EQ(*content, runs[p.run].substr(p.run_offset, p.length)) << "run " << p.run;
    }
    for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(seen[i], runs[i].size());
  }

  std::string path(SegmentId id) const {
    char name[32];
    std::snprintf(name, sizeof name, "/%016llx.seg", static_cast<unsigned long long>(id.value));
    return options_.directory + name;
  }

  std::string peek(SegmentId id, std::uint64_t offset, std::size_t size) {
    std::string bytes(size, '\0');
    const int fd = ::open(path(id).c_str(), O_RDONLY);
    EXPECT_EQ(::pread(fd, bytes.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    ::close(fd);
    return bytes;
  }

  /// Changes the file behind the store's back.
  void poke(SegmentId id, std::uint64_t offset, const std::string& bytes) {
    const int fd = ::open(path(id).c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(::fsync(fd), 0);
    ::close(fd);
  }
  void flip(SegmentId id, std::uint64_t offset) {
    std::string byte = peek(id, offset, 1);
    byte[0] = static_cast<char>(byte[0] ^ 0x10);
    poke(id, offset, byte);
  }

  std::vector<std::string> files() {
    auto names = make_real_disk()->list(options_.directory);
    return names ? *names : std::vector<std::string>{};
  }
  std::uint64_t bytes_on_disk() {
    std::uint64_t sum = 0;
    for (const auto& name : files())
      sum += std::filesystem::file_size(options_.directory + "/" + name);
    return sum;
  }

  TempFolder folder_;
  FaultyDisk disk_;
  StoreOptions options_;
  std::mutex mutex_;
  std::map<SegmentId, KnownSegment> known_;
  std::uint64_t next_id_ = 1;
  std::atomic<bool> fail_open_segment_ = false;
  std::unique_ptr<SegmentStore> store_;
};

}  // namespace kvsyncfs
