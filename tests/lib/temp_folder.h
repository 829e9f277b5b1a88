// A folder that is gone with the test. Thread: values, one at a time.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace kvsyncfs {

class TempFolder {
 public:
  /// Below `parent`. /var/tmp is a real disk with direct I/O, /dev/shm is memory.
  explicit TempFolder(const std::string& parent = "/var/tmp")
      : path_(parent + "/kvsyncfs-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kvsyncfs
