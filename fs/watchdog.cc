#include "fs/watchdog.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "engine/env/mount_table.h"
#include "fs/run_files.h"

namespace kvsyncfs {
namespace {

constexpr int kSocket = 3;  // the child's only descriptor beside the standard ones
const char* const kConnections = "/sys/fs/fuse/connections";

bool is_closed(ssize_t received) {
  return received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR);
}

/// The child shows up as itself in ps(1), not as a second daemon: the arguments are overwritten
/// where the kernel finds them (fields 48 and 49 of /proc/self/stat).
void rename_process(const std::string& mountpoint) {
  ::prctl(PR_SET_NAME, "kvsyncfs-watch");
  std::ifstream file("/proc/self/stat");
  std::string stat;
  std::getline(file, stat);
  std::size_t at = stat.rfind(')');  // the name before it may hold blanks
  for (int field = 2; field < 48 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return;
  char* rest = stat.data() + at;
  const auto begin = std::strtoull(rest, &rest, 10);
  const auto end = std::strtoull(rest, &rest, 10);
  if (begin == 0 || end <= begin) return;
  const std::string words = std::string("kvsyncfs-watchdog") + '\0' + mountpoint;
  auto* const area = reinterpret_cast<char*>(begin);
  std::memset(area, 0, end - begin);
  std::memcpy(area, words.data(), std::min<std::size_t>(words.size(), end - begin - 1));
}

/// Nothing of the daemon's: neither its terminal and pipes, nor its folder or process group.
void detach_process(int fd) {
  ::setsid();
  [[maybe_unused]] const int changed = ::chdir("/");
  const int null = ::open("/dev/null", O_RDWR);
  // Above the places that they are copied to.
  const int socket = ::fcntl(fd, F_DUPFD, 10);
  const int nothing = ::fcntl(null, F_DUPFD, 10);
  for (int stream = 0; stream < kSocket; ++stream) ::dup2(nothing, stream);
  ::dup2(socket, kSocket);
  ::close_range(kSocket + 1, ~0u, 0);
}

/// A descriptor for the abort file names the connection itself: the number in its path may belong
/// to another mount later.
int open_abort(std::uint64_t device) {
  const std::string path =
      std::string(kConnections) + "/" + std::to_string(minor(device)) + "/abort";
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0 && ::mount("none", kConnections, "fusectl", 0, nullptr) == 0) {
    fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  }
  return fd;
}

bool is_mounted(std::uint64_t device, const std::string& mountpoint) {
  const auto table = read_mount_table();
  const auto entry = table ? mount_at(*table, mountpoint) : std::nullopt;
  return entry && entry->device == device;
}

bool abort_connection(int abort_fd, std::uint64_t device, const std::string& mountpoint) {
  if (abort_fd >= 0) return ::write(abort_fd, "1", 1) == 1;
  // Without fusectl: a forced umount aborts the connection, also where the mount is busy.
  return is_mounted(device, mountpoint) &&
         (::umount2(mountpoint.c_str(), MNT_FORCE) == 0 || errno == EBUSY);
}

void run_child(std::uint64_t timeout_s, const std::string& mountpoint, pid_t daemon) {
  std::uint64_t device = 0;
  ssize_t size = 0;
  while ((size = ::recv(kSocket, &device, sizeof(device), 0)) < 0 && errno == EINTR) {
  }
  if (size != sizeof(device)) return;  // the daemon ended before the mount was there
  const int abort_fd = open_abort(device);
  if (watch_heartbeat(kSocket, static_cast<int>(timeout_s * 1000 / 3)) != WatchEnd::kSilent) return;
  const bool aborted = abort_connection(abort_fd, device, mountpoint);
  // The helper of umount(8) shall not wait for this daemon.
  if (aborted && is_mounted(device, mountpoint)) {
    ::unlink((std::string(kRunFolder) + "/" + socket_name(device)).c_str());
  }
  ::openlog("kvsyncfs", 0, LOG_DAEMON);
  ::syslog(LOG_ERR,
           "%s: process %d has not answered for %llu s; its FUSE connection is %s. "
           "End the process to free the store.",
           mountpoint.c_str(), daemon, static_cast<unsigned long long>(timeout_s * 2),
           aborted ? "aborted" : "still there and cannot be aborted");
}

}  // namespace

WatchEnd watch_heartbeat(int fd, int interval_ms) {
  using SteadyClock = std::chrono::steady_clock;
  bool is_asked = false;
  for (int missed = 0; missed < kMissedMax;) {
    if (!is_asked) is_asked = ::send(fd, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    bool has_answer = false;
    const auto end = SteadyClock::now() + std::chrono::milliseconds(interval_ms);
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now());
      if (left.count() <= 0) break;
      pollfd polled{fd, POLLIN, 0};
      if (::poll(&polled, 1, static_cast<int>(left.count())) <= 0) continue;
      char answer = 0;
      const ssize_t size = ::recv(fd, &answer, 1, MSG_DONTWAIT);
      if (is_closed(size)) return WatchEnd::kDaemonEnded;
      if (size == 1) has_answer = true;
    }
    if (has_answer) is_asked = false;
    missed = has_answer ? 0 : missed + 1;
  }
  return WatchEnd::kSilent;
}

Watchdog::~Watchdog() {
  stop();
  if (fd_ >= 0) ::close(fd_);
}

Status Watchdog::start(std::uint64_t timeout_s, const std::string& mountpoint) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(Code::kNoMemory, std::string("watchdog: no socket: ") + std::strerror(errno));
  }
  const pid_t daemon = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    detach_process(ends[1]);
    rename_process(mountpoint);
    run_child(timeout_s, mountpoint, daemon);
    ::_exit(0);
  }
  const int error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return Error(Code::kNoMemory, std::string("watchdog: cannot fork: ") + std::strerror(error));
  }
  fd_ = ends[0];
  child_ = child;
  return {};
}

void Watchdog::watch(std::uint64_t device) const {
  ::send(fd_, &device, sizeof(device), MSG_NOSIGNAL);
}

void Watchdog::stop() {
  if (child_ < 0) return;
  // SIGKILL, not the closed socket: it ends a stopped process as well, so the wait is short.
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

}  // namespace kvsyncfs
