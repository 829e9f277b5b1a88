// A Disk in memory that keeps apart what a program sees and what a power cut leaves.
//
// Bytes are safe after File::sync, names after sync_directory of their folder. crash() goes back to
// what is safe; of the unsynced writes it keeps nothing, all, or, sector by sector, what a given
// chooser keeps. A hook sees every operation before it happens and may fail it, or let only a part
// of a write happen. Direct files refuse what is not aligned. Thread: any, save crash() and the
// look-behind-the-scenes calls (contents, set_contents, ...), which want the disk at rest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/env/disk.h"

namespace kvsyncfs {

enum class DiskOperation {
  kOpen,
  kRead,
  kWrite,
  kSync,
  kAllocate,
  kTruncate,
  kRemove,
  kRename,
  kMakeDirectory,
  kRemoveDirectory,
  kSyncDirectory,
};

struct DiskRequest {
  DiskOperation operation;
  std::string path;
  std::uint64_t offset = 0, size = 0;  ///< reads, writes, allocate, truncate
  /// A hook that fails a write may set how many of its bytes reach the file before.
  std::uint64_t* written = nullptr;
};

class MemoryDisk : public Disk {
 public:
  using Hook = std::function<Status(DiskRequest&)>;
  /// Does the sector (of 512 bytes, the `index`th of all unsynced ones) survive the crash?
  using Chooser = std::function<bool(std::size_t index)>;

  explicit MemoryDisk(std::uint64_t size_bytes = std::uint64_t{1} << 40);

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, bool direct) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status make_directory(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Status sync_directory(const std::string& directory) override;
  Result<bool> exists(const std::string& path) override;
  Result<bool> is_directory(const std::string& path) override;
  Result<std::uint64_t> size_of(const std::string& path) override;
  Result<DiskSpace> space(const std::string& path) override;

  /// The hook runs with no lock held. Set it while no operation runs.
  void set_hook(Hook hook) { hook_ = std::move(hook); }
  /// Power cut: names and bytes are what was synced, and those unsynced sectors that `keeps` keeps.
  /// Files that are open stay with what they were and are not part of the disk any more.
  void crash(const Chooser& keeps = [](std::size_t) { return false; });

  std::string contents(
      const std::string& path);  ///< what a read sees; fails the test if it is missing
  void set_contents(const std::string& path, std::string bytes);  ///< safe at once
  std::uint64_t count(DiskOperation operation);  ///< since the start, failed ones included
  std::uint64_t used_bytes();

 private:
  friend class MemoryFile;
  struct Node {
    std::string bytes;  ///< what a read sees
    std::string safe;   ///< what was synced
    struct Write {      ///< unsynced
      std::uint64_t offset = 0;
      std::string bytes;
    };
    std::vector<Write> unsynced;
    std::uint64_t reserved = 0;  ///< bytes that it takes of the disk
  };
  using NodePtr = std::shared_ptr<Node>;  ///< shared by names and by open files, as inodes are
  using Names = std::map<std::string, NodePtr>;  ///< null: a directory

  Status begin(DiskRequest& request);
  Status write(Node& node, std::uint64_t offset, std::span<const Bytes> pieces,
               std::uint64_t limit);
  Status resize(Node& node, std::uint64_t size);
  Status reserve(Node& node, std::uint64_t size);
  bool has_parent(const std::string& path) const;

  std::mutex mutex_;
  const std::uint64_t size_bytes_;
  Names names_, safe_names_;
  std::map<DiskOperation, std::uint64_t> counts_;
  Hook hook_;
};

/// Fails the `nth` (from 1) operation of a kind on a path that contains `part`, and then all of
/// them.
MemoryDisk::Hook fail_from(DiskOperation operation, std::string part, std::uint64_t nth, Code code);

}  // namespace kvsyncfs
