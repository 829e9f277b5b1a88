// A small LocalLog on a disk in memory, and what its applier saw.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/format/log_layout.h"
#include "engine/log/local_log.h"
#include "engine/log/log_reader.h"
#include "tests/lib/memory_disk.h"

namespace kvsyncfs {

class LocalLogTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFileSize = 64u << 10;
  static constexpr std::uint64_t kBatchMax = 16u << 10;

  LocalLogTest() {
    options_.directory = "store/log";
    options_.volume_tag = 0x1122334455667788;
    options_.file_size_bytes = kFileSize;
    options_.file_count_max = 4;
    options_.batch_size_max = kBatchMax;
  }

  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("store"));
    ASSERT_TRUE(format_local_log(disk_, options_));
    ASSERT_TRUE(disk_.sync_directory(""));
    ASSERT_TRUE(disk_.sync_directory("store"));
  }

  /// Opens and starts; what is replayed beyond `applied`, and appended, goes to seen_.
  Status try_open(Position applied = {}) {
    log_.reset();
    seen_.clear();
    first_seen_ = {};
    KVSYNCFS_ASSIGN(log_, open_local_log(disk_, options_));
    handed_out_ = 0;
    return log_->start(applied, [this, applied](Position position, std::string_view entry) {
      ++handed_out_;
      if (position <= applied) return;
      if (seen_.empty()) first_seen_ = position;
      EXPECT_EQ(position.value, first_seen_.value + seen_.size());
      seen_.emplace_back(entry);
    });
  }
  void open(Position applied = {}) {
    const Status status = try_open(applied);
    ASSERT_TRUE(status) << describe(status.error());
  }
  Position append(std::string_view entry) {
    const Result<Position> position = log_->append(entry);
    EXPECT_TRUE(position) << describe(position.error());
    return position ? *position : Position{};
  }
  /// One batch of its own.
  Position commit(std::string_view entry) {
    const Position position = append(entry);
    const Status status = log_->sync(position);
    EXPECT_TRUE(status) << describe(status.error());
    return position;
  }
  void crash(const MemoryDisk::Chooser& keeps = [](std::size_t) { return false; }) {
    log_.reset();
    disk_.crash(keeps);
  }

  std::vector<std::string> log_files() {
    std::vector<std::string> paths;
    const auto names = disk_.list(options_.directory);
    EXPECT_TRUE(names);
    for (const std::string& name : *names) paths.push_back(options_.directory + "/" + name);
    return paths;
  }
  /// Every file of the log with its bytes.
  std::map<std::string, std::string> image() {
    std::map<std::string, std::string> files;
    for (const std::string& path : log_files()) files[path] = disk_.contents(path);
    return files;
  }
  /// The file that holds the log's first batch.
  std::string written_file() {
    const auto scan = scan_log(disk_, options_, {});
    EXPECT_TRUE(scan);
    for (const ScannedFile& file : scan->files)
      if (file.used_bytes > 0) return log_file_path(options_.directory, file.generation);
    ADD_FAILURE() << "no file holds a batch";
    return {};
  }

  using Entries = std::vector<std::string>;

  MemoryDisk disk_;
  LocalLogOptions options_;
  std::unique_ptr<SharedLog> log_;
  Entries seen_;
  Position first_seen_;
  std::size_t handed_out_ = 0;  ///< entries that came to the applier, applied ones too
};

}  // namespace kvsyncfs
