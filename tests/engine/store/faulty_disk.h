// The real disk, with faults on demand: what the store is to survive without a crash. Counts what
// the tests ask for. Thread: any; faults are set between operations.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/env/real.h"

namespace kvsyncfs {

struct DiskFaults {
  std::atomic<bool> fail_sync = false, fail_write = false, fail_open = false, fail_rename = false;
  std::atomic<bool> disk_is_full = false;  ///< allocate fails
  std::atomic<int> syncs = 0, directory_syncs = 0, open_files = 0, open_files_max = 0, writes = 0;
};

class FaultyFile final : public File {
 public:
  FaultyFile(std::unique_ptr<File> file, DiskFaults& faults)
      : file_(std::move(file)), faults_(faults) {
    const int open = ++faults_.open_files;
    int max = faults_.open_files_max;
    while (open > max && !faults_.open_files_max.compare_exchange_weak(max, open)) {
    }
  }
  ~FaultyFile() override { --faults_.open_files; }

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) override {
    return file_->read_at(offset, out);
  }
  Status write_at(std::uint64_t offset, std::span<const Bytes> pieces) override {
    ++faults_.writes;
    if (faults_.fail_write) return Error(Code::kIo, "write");
    return file_->write_at(offset, pieces);
  }
  Status sync() override {
    ++faults_.syncs;
    if (faults_.fail_sync) return Error(Code::kIo, "sync");
    return file_->sync();
  }
  Status allocate(std::uint64_t size) override {
    if (faults_.disk_is_full) return Error(Code::kNoSpace, "allocate");
    return file_->allocate(size);
  }
  Status truncate(std::uint64_t size) override { return file_->truncate(size); }
  Result<std::uint64_t> size() override { return file_->size(); }

 private:
  std::unique_ptr<File> file_;
  DiskFaults& faults_;
};

class FaultyDisk final : public Disk {
 public:
  DiskFaults faults;

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, bool direct) override {
    if (faults.fail_open) return Error(Code::kIo, path);
    KVSYNCFS_ASSIGN(auto file, disk_->open(path, mode, direct));
    return std::unique_ptr<File>(std::make_unique<FaultyFile>(std::move(file), faults));
  }
  Status remove(const std::string& path) override { return disk_->remove(path); }
  Status rename(const std::string& from, const std::string& to) override {
    if (faults.fail_rename) return Error(Code::kIo, from);
    return disk_->rename(from, to);
  }
  Status make_directory(const std::string& path) override { return disk_->make_directory(path); }
  Status remove_directory(const std::string& path) override {
    return disk_->remove_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return disk_->list(directory);
  }
  Status sync_directory(const std::string& directory) override {
    ++faults.directory_syncs;
    return disk_->sync_directory(directory);
  }
  Result<bool> exists(const std::string& path) override { return disk_->exists(path); }
  Result<bool> is_directory(const std::string& path) override { return disk_->is_directory(path); }
  Result<std::uint64_t> size_of(const std::string& path) override { return disk_->size_of(path); }
  Result<DiskSpace> space(const std::string& path) override { return disk_->space(path); }

 private:
  std::unique_ptr<Disk> disk_ = make_real_disk();
};

}  // namespace kvsyncfs
