// Where a daemon can be asked: /run/kvsyncfs/<major>-<minor>.sock, after the device number of its
// mount, and <uuid>.sock, a link to it. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace kvsyncfs {

inline constexpr std::string_view kRunFolder = "/run/kvsyncfs";

/// Name of the socket of the mount with this st_dev.
std::string socket_name(std::uint64_t device);

/// A listening socket and its link. Both go with the object; what an earlier life left behind under
/// the same names is replaced.
class RunFiles {
 public:
  RunFiles() = default;
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  /// Makes `folder` (0755) where it is missing, and in it the socket `name` (0666) and the link.
  /// Errors: kAccess, kReadOnly, kNoSpace, kNameTooLong, kIo.
  Status make(const std::string& folder, const std::string& name, const std::string& link);
  /// The listening socket, non-blocking; -1 before make().
  int fd() const { return fd_; }

 private:
  Status listen();
  Status make_link(const std::string& name);

  std::string socket_, link_;
  int fd_ = -1;
};

}  // namespace kvsyncfs
