// An open file of the real Disk, on a Linux file descriptor. Thread: as File says.
#pragma once

#include <memory>
#include <string>

#include "engine/env/disk.h"

namespace kvsyncfs {

/// Takes over `fd`, which was opened from `path`. `direct` says that it has O_DIRECT set.
std::unique_ptr<File> make_real_file(int fd, std::string path, bool direct);

/// The error for a failed system call: "open /path: Permission denied".
Error system_error(Code code, const char* call, const std::string& path, int error);
inline Error system_error(const char* call, const std::string& path, int error) {
  return system_error(from_errno(error), call, path, error);
}

}  // namespace kvsyncfs
