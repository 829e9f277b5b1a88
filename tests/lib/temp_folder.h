// A folder that is gone with the test. Thread: values, one at a time.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace kvsyncfs {

class TempFolder {
 public:
  /// Below `parent`, or below $TMPDIR, or below /var/tmp, which is on a disk where /tmp may not be.
  explicit TempFolder(const std::string& parent = default_parent())
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
  static std::string default_parent() {
    const char* chosen = std::getenv("TMPDIR");
    return chosen != nullptr && *chosen != '\0' ? chosen : "/var/tmp";
  }

  std::string path_;
};

}  // namespace kvsyncfs
