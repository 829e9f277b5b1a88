#include "fs/run_files.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

namespace kvsyncfs {
namespace {

constexpr int kBacklog = 64;  // connections that the kernel keeps until they are accepted

Error failure(const std::string& path) {
  const int error = errno;
  return Error(from_errno(error), path + ": " + std::strerror(error));
}

bool links_to(const std::string& link, std::string_view name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  return size >= 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == name;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string socket_name(std::uint64_t device) {
  return fmt::format("{}-{}.sock", major(device), minor(device));
}

RunFiles::~RunFiles() {
  // The link may be another daemon's by now: the volume was mounted elsewhere.
  if (!link_.empty() && links_to(link_, base_name(socket_))) ::unlink(link_.c_str());
  if (fd_ < 0) return;
  ::unlink(socket_.c_str());
  ::close(fd_);
}

Status RunFiles::make(const std::string& folder, const std::string& name, const std::string& link) {
  if (::mkdir(folder.c_str(), 0755) == 0) {
    ::chmod(folder.c_str(), 0755);  // whatever the umask is
  } else if (errno != EEXIST) {
    return failure(folder);
  }
  socket_ = folder + "/" + name;
  KVSYNCFS_TRY(listen());
  link_ = folder + "/" + link;
  return make_link(name);
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
  if (::chmod(socket_.c_str(), 0666) != 0 || ::listen(fd, kBacklog) != 0) return failure(socket_);
  return {};
}

Status RunFiles::make_link(const std::string& name) {
  const std::string fresh = fmt::format("{}.{}", link_, ::getpid());
  ::unlink(fresh.c_str());
  if (::symlink(name.c_str(), fresh.c_str()) != 0) return failure(fresh);
  if (::rename(fresh.c_str(), link_.c_str()) == 0) return {};
  const Error error = failure(link_);
  ::unlink(fresh.c_str());
  return error;
}

}  // namespace kvsyncfs
