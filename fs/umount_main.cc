// umount.fuse.kvsyncfs: what umount(8) runs for a kvsyncfs. The kernel does not wait for a FUSE
// daemon, so this does: it asks the daemon to make everything durable, unmounts, and waits until
// the daemon has ended.
#include <getopt.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "engine/env/daemon_client.h"
#include "engine/env/mount_table.h"
#include "fs/run_files.h"

namespace kvsyncfs {
namespace {

// Exit statuses of umount(8).
constexpr int kUsage = 1;
constexpr int kFailed = 32;

constexpr int kBarrierMs = 60'000;
constexpr int kPingMs = 15'000;
constexpr int kImpatientPingMs = 2'000;  // -f, -l
constexpr int kEndMs = 60'000;
// A mount namespace that is being made holds a copy of each mount until its maker drops it.
constexpr int kCopyMs = 5'000;
constexpr int kLookMs = 50;

struct Words {
  std::string path;
  bool force = false, lazy = false, verbose = false;
};

int fail(int status, const std::string& line) {
  std::fprintf(stderr, "umount.fuse.kvsyncfs: %s\n", line.c_str());
  return status;
}

class Process {
 public:
  explicit Process(pid_t pid)
      : pid_(pid), fd_(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1) {}
  ~Process() {
    if (fd_ >= 0) ::close(fd_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  /// True if it has ended within the time, or had before.
  bool wait_for_end(int timeout_ms) const {
    pollfd polled{fd_, POLLIN, 0};
    int ready = 0;
    while ((ready = ::poll(&polled, fd_ >= 0, timeout_ms)) < 0 && errno == EINTR) {
    }
    return fd_ < 0 || ready > 0;
  }

 private:
  const pid_t pid_;
  const int fd_;
};

/// The connection of a mount, by the inode of its folder: numbers of devices are used again.
std::optional<ino_t> connection_of(std::uint64_t device) {
  const std::string folder = "/sys/fs/fuse/connections/" + std::to_string(minor(device));
  struct stat st {};
  if (::stat(folder.c_str(), &st) != 0) return std::nullopt;
  return st.st_ino;
}

std::string error_of(const std::string& answer) {
  boost::system::error_code broken;
  const auto json = boost::json::parse(answer, broken);
  if (broken || !json.is_object()) return "the daemon answers nonsense";
  const auto& object = json.get_object();
  const auto* ok = object.if_contains("ok");
  if (ok != nullptr && ok->is_bool() && ok->get_bool()) return {};
  const auto* error = object.if_contains("error");
  return error != nullptr && error->is_string() ? error->get_string().c_str() : "no reason given";
}

/// Why the mount should stay, or nothing. A daemon that has ended has nothing to make durable.
std::optional<std::string> ask_barrier(const Words& words, const std::string& socket, pid_t pid) {
  const bool insists = words.force || words.lazy;
  if (words.verbose)
    std::printf("%s: process %d writes what is not yet durable\n", words.path.c_str(), pid);
  const auto answer = ask(socket, "barrier", kBarrierMs);
  std::string reason;
  if (!answer && answer.error().code == Code::kNotFound) return {};
  if (!answer && answer.error().code == Code::kTimeout) {
    reason = "the daemon (process " + std::to_string(pid) + ") is still writing after 60 s";
  } else if (!answer) {
    reason = describe(answer.error());
  } else if (const std::string error = error_of(answer->text); !error.empty()) {
    reason = "the daemon cannot make everything durable: " + error;
  }
  if (reason.empty() || insists) return {};
  return reason + "; umount -l or -f goes on without";
}

/// What the kernel has for all mounts of a superblock. Only the last one ends it: bind mounts,
/// other namespaces and open files keep it.
class Connection {
 public:
  explicit Connection(std::uint64_t device) : device_(device), inode_(connection_of(device)) {}

  bool is_there() const { return inode_ && connection_of(device_) == inode_; }
  /// Whether this namespace shows it still: such a mount stays until somebody unmounts it.
  bool is_mounted_here() const {
    const auto table = read_mount_table();
    return table && std::any_of(table->begin(), table->end(), [this](const MountEntry& mount) {
             return mount.device == device_;
           });
  }
  /// True if it has ended within kCopyMs; `daemon` ends after it.
  bool wait_for_end(const Process& daemon) const {
    using Clock = std::chrono::steady_clock;
    const auto late = Clock::now() + std::chrono::milliseconds(kCopyMs);
    while (is_there() && Clock::now() < late) {
      if (daemon.wait_for_end(kLookMs)) return true;
    }
    return !is_there();
  }

 private:
  const std::uint64_t device_;
  const std::optional<ino_t> inode_;
};

int wait_for_daemon(const Words& words, const Connection& connection, const Process& daemon) {
  if (daemon.pid() == 0) return 0;
  const bool stays = connection.is_there() && (words.lazy || connection.is_mounted_here());
  if (stays || !connection.wait_for_end(daemon)) {
    if (words.verbose || !words.lazy)
      std::fprintf(stderr,
                   "umount.fuse.kvsyncfs: %s: still mounted elsewhere (bind mount or mount "
                   "namespace) or open, the daemon (process %d) goes on\n",
                   words.path.c_str(), daemon.pid());
    return 0;
  }
  if (daemon.wait_for_end(kEndMs)) return 0;
  return fail(kFailed, words.path + ": unmounted, but the daemon (process " +
                           std::to_string(daemon.pid()) + ") has not ended after 60 s");
}

int unmount(const Words& words, const MountEntry& mount) {
  const std::string socket = std::string(kRunFolder) + "/" + socket_name(mount.device);
  const bool insists = words.force || words.lazy;
  const auto alive = ask(socket, "ping", insists ? kImpatientPingMs : kPingMs);
  if (!alive && alive.error().code == Code::kTimeout && !insists) {
    return fail(kFailed,
                words.path + ": the daemon does not answer; umount -l or -f goes on without");
  }
  const Process daemon(alive ? alive->pid : 0);
  if (alive) {
    if (const auto reason = ask_barrier(words, socket, daemon.pid())) {
      return fail(kFailed, words.path + ": " + *reason);
    }
  }
  const Connection connection(mount.device);
  const int flags = (words.force ? MNT_FORCE : 0) | (words.lazy ? MNT_DETACH : 0) | UMOUNT_NOFOLLOW;
  if (::umount2(mount.mountpoint.c_str(), flags) != 0) {
    if (errno == EBUSY) return fail(kFailed, words.path + ": target is busy");
    return fail(kFailed, words.path + ": " + std::strerror(errno));
  }
  if (words.verbose) std::printf("%s: unmounted\n", words.path.c_str());
  return wait_for_daemon(words, connection, daemon);
}

int usage(int status) {
  std::fputs("usage: umount.fuse.kvsyncfs MNT [-f] [-l] [-n] [-v]\n",
             status == 0 ? stdout : stderr);
  return status;
}

/// The exit status, if the words end the program already.
std::optional<int> parse(int argc, char** argv, Words& words) {
  static const option kLong[] = {
      {"help", no_argument, nullptr, 'h'}, {"version", no_argument, nullptr, 'V'}, {}};
  for (int letter = 0;
       (letter = ::getopt_long(argc, argv, "flnvrihVt:N:", kLong, nullptr)) != -1;) {
    switch (letter) {
      case 'f':
        words.force = true;
        break;
      case 'l':
        words.lazy = true;
        break;
      case 'v':
        words.verbose = true;
        break;
      case 'n':
      case 'i':
      case 't':
        break;  // umount(8) has done its part
      case 'r':
        return fail(kUsage, "-r is not supported: mount again with -o ro");
      case 'N':
        return fail(kUsage, "-N is not supported: use nsenter(1)");
      case 'h':
        return usage(0);
      case 'V':
        return std::puts("umount.fuse.kvsyncfs " KVSYNCFS_VERSION) < 0;
      default:
        return usage(kUsage);
    }
  }
  if (optind + 1 != argc) return usage(kUsage);
  words.path = argv[optind];
  return std::nullopt;
}

int run(const Words& words) {
  const auto table = read_mount_table();
  if (!table) return fail(kFailed, describe(table.error()));
  const auto mount = mount_at(*table, mount_path(words.path, *table));
  if (!mount) return fail(kUsage, words.path + ": not mounted");
  if (mount->type != kMountType)
    return fail(kUsage, words.path + ": a mount of " + mount->type + ", not of kvsyncfs");
  if (::geteuid() != 0) return fail(kUsage, words.path + ": only root can unmount");
  return unmount(words, *mount);
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) try {
  kvsyncfs::Words words;
  if (const auto status = kvsyncfs::parse(argc, argv, words)) return *status;
  return kvsyncfs::run(words);
} catch (const std::exception& error) {
  return kvsyncfs::fail(kvsyncfs::kFailed, error.what());
}
