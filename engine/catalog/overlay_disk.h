// A Disk whose changes stay in memory, over one that is only read: a catalog opened read-only still
// has to apply what the log holds. Thread: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "engine/env/disk.h"

namespace kvsyncfs {

class OverlayDisk final : public Disk {
 public:
  /// `lower` outlives the overlay.
  explicit OverlayDisk(Disk& lower) : lower_(lower) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, bool direct) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status make_directory(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Status sync_directory(const std::string&) override { return {}; }
  Result<bool> exists(const std::string& path) override;
  Result<bool> is_directory(const std::string& path) override { return lower_.is_directory(path); }
  Result<std::uint64_t> size_of(const std::string& path) override;
  Result<DiskSpace> space(const std::string& path) override { return lower_.space(path); }

  struct Content {
    std::mutex mutex;
    std::string bytes;
  };

 private:
  /// The file in memory, copied up if it is below only.
  Result<std::shared_ptr<Content>> raise_locked(const std::string& path, OpenMode mode);

  Disk& lower_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Content>>
      files_;                      ///< shared: an open file outlives its name
  std::set<std::string> removed_;  ///< names below that are gone
};

}  // namespace kvsyncfs
