// Where a daemon can be asked, as engine/env/daemon_client.h names it. Thread: values.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/env/daemon_client.h"

namespace kvsyncfs {

/// A listening socket with two names. Both go with the object; what earlier lives left behind
/// goes when one is made: whatever nobody listens to. (Hard links: a name that outlives a killed
/// daemon is refused, while a symbolic link could lead to the next daemon with the same device
/// number.)
class RunFiles {
 public:
  RunFiles() = default;
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  /// Makes `folder` (0755) where it is missing, and in it the socket (0666), with a second name
  /// where `alias` is one.
  /// Errors: kAccess, kReadOnly, kNoSpace, kNameTooLong, kIo.
  Status make(const std::string& folder, const std::string& name, const std::string& alias);
  /// The listening socket, non-blocking; -1 before make().
  int fd() const { return fd_; }

 private:
  Status listen(const std::string& path);
  Status make_alias(const std::string& path);

  std::string socket_, alias_;
  std::uint64_t inode_ = 0;  // of both names
  int fd_ = -1;
};

}  // namespace kvsyncfs
