#include "engine/env/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace kvsyncfs {

Result<StoreLock> StoreLock::take(const std::string& store) {
  const std::string path = store + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    const int error = errno;
    return Error(from_errno(error), path + ": " + std::strerror(error));
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return StoreLock(fd);
  const int error = errno;
  ::close(fd);
  if (error == EWOULDBLOCK)
    return Error(Code::kBusy, store + ": in use by another process (mounted, or being checked)");
  return Error(from_errno(error), path + ": " + std::strerror(error));
}

StoreLock::StoreLock(StoreLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StoreLock::~StoreLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace kvsyncfs
