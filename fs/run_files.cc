#include "fs/run_files.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace kvsyncfs {
namespace {

constexpr int kBacklog = 64;  // connections that the kernel keeps until they are accepted

Error failure(const std::string& path) {
  const int error = errno;
  return Error(from_errno(error), path + ": " + std::strerror(error));
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return failure(path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

/// Which file a path names; 0 if none.
ino_t inode_of(const std::string& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

bool refuses(const std::string& path) {
  const auto address = address_of(path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (!address || fd < 0) return false;
  const bool refused =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0 &&
      errno == ECONNREFUSED;
  ::close(fd);
  return refused;
}

/// A killed daemon leaves its names behind; only those of a device number are used again. A socket
/// has its name when somebody listens already, so one that refuses is nobody's.
void remove_dead_sockets(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path();
    const ino_t inode = inode_of(path);
    if (path.ends_with(".sock") && refuses(path) && inode_of(path) == inode) ::unlink(path.c_str());
  }
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
  remove_dead_sockets(folder);
  // A device number has one mount at a time, so whatever has this name is of a dead daemon.
  socket_ = folder + "/" + name;
  const std::string fresh = fmt::format("{}.{}", socket_, ::getpid());
  KVSYNCFS_TRY(listen(fresh));
  if (::rename(fresh.c_str(), socket_.c_str()) != 0) {
    const Error error = failure(socket_);
    ::unlink(fresh.c_str());
    return error;
  }
  return alias.empty() ? Status{} : make_alias(folder + "/" + alias);
}

Status RunFiles::listen(const std::string& path) {
  KVSYNCFS_ASSIGN(const sockaddr_un address, address_of(path));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return failure(path);
  ::unlink(path.c_str());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const Error error = failure(path);
    ::close(fd);
    return error;
  }
  fd_ = fd;
  inode_ = inode_of(path);
  if (::chmod(path.c_str(), 0666) == 0 && ::listen(fd, kBacklog) == 0) return {};
  const Error error = failure(path);
  ::unlink(path.c_str());
  return error;
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
