#include "engine/env/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace kvsyncfs {
namespace {

namespace stdfs = std::filesystem;

bool has_open(const stdfs::path& process, const struct stat& lock) {
  std::error_code error;
  for (const auto& fd : stdfs::directory_iterator(process / "fd", error)) {
    struct stat found {};
    if (::stat(fd.path().c_str(), &found) == 0 && found.st_dev == lock.st_dev &&
        found.st_ino == lock.st_ino)
      return true;
  }
  return false;
}

/// Who has the lock file open, as far as this process may see that.
std::string holder(const struct stat& lock) {
  std::error_code error;
  for (const auto& process : stdfs::directory_iterator("/proc", error)) {
    const std::string pid = process.path().filename();
    if (pid.find_first_not_of("0123456789") != pid.npos || !has_open(process.path(), lock))
      continue;
    std::string name;
    std::getline(std::ifstream(process.path() / "comm"), name);
    return name + ", process " + pid;
  }
  return "another process";
}

}  // namespace

Result<StoreLock> StoreLock::take(const std::string& store, Mode mode) {
  const std::string path = store + "/lock";
  const int flags = mode == Mode::kLook ? O_RDONLY : O_RDWR | O_CREAT;
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) {
    const int error = errno;
    return Error(from_errno(error), path + ": " + std::strerror(error));
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return StoreLock(fd);
  const int error = errno;
  struct stat lock {};
  const bool known = ::fstat(fd, &lock) == 0;
  ::close(fd);
  if (error == EWOULDBLOCK)
    return Error(Code::kBusy, store + ": in use by " + (known ? holder(lock) : "another process") +
                                  " (mounted, or being checked)");
  return Error(from_errno(error), path + ": " + std::strerror(error));
}

StoreLock::StoreLock(StoreLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StoreLock::~StoreLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace kvsyncfs
