#include "fs/run_files.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace kvsyncfs {
namespace {

constexpr int kBacklog = 64;  // connections that the kernel keeps until they are accepted

Error failure(const std::string& path) {
  const int error = errno;
  return Error(from_errno(error), path + ": " + std::strerror(error));
}

/// Which file a path names; 0 if none.
ino_t inode_of(const std::string& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

}  // namespace

RunFiles::~RunFiles() {
  // A name may be another daemon's by now: the device number is free as soon as the mount is gone,
  // and a copy of the volume has the same UUID.
  for (const std::string& path : {alias_, socket_}) {
    if (inode_ != 0 && inode_of(path) == inode_) ::unlink(path.c_str());
  }
  if (fd_ >= 0) ::close(fd_);
}

Status RunFiles::make(const std::string& folder, const std::string& name,
                      const std::string& alias) {
  if (::mkdir(folder.c_str(), 0755) == 0) {
    ::chmod(folder.c_str(), 0755);  // whatever the umask is
  } else if (errno != EEXIST) {
    return failure(folder);
  }
  socket_ = folder + "/" + name;
  KVSYNCFS_TRY(listen());
  return make_alias(folder + "/" + alias);
}

Status RunFiles::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return failure(socket_);
  }
  std::memcpy(address.sun_path, socket_.c_str(), socket_.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return failure(socket_);
  // A device number has one mount at a time, so whatever has this name is of a dead daemon.
  ::unlink(socket_.c_str());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const Error error = failure(socket_);
    ::close(fd);
    return error;
  }
  fd_ = fd;
  inode_ = inode_of(socket_);
  if (::chmod(socket_.c_str(), 0666) != 0 || ::listen(fd, kBacklog) != 0) return failure(socket_);
  return {};
}

Status RunFiles::make_alias(const std::string& path) {
  const std::string fresh = fmt::format("{}.{}", path, ::getpid());
  ::unlink(fresh.c_str());
  if (::link(socket_.c_str(), fresh.c_str()) != 0) return failure(fresh);
  if (::rename(fresh.c_str(), path.c_str()) == 0) {
    alias_ = path;
    return {};
  }
  const Error error = failure(path);
  ::unlink(fresh.c_str());
  return error;
}

}  // namespace kvsyncfs
