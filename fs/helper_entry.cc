#include "fs/helper_entry.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace kvsyncfs {
namespace {

constexpr int kWaitMs = 5000;

/// As a shell would start it, silent: not with this process's signal mask, input and output.
Result<pid_t> start(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char* const environment[] = {nullptr};

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_init(&actions);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return Error(from_errno(error), words[0] + ": cannot start");
  return pid;
}

Status run(const std::vector<std::string>& words) {
  KVSYNCFS_ASSIGN(const pid_t pid, start(words));
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  pollfd polled{fd, POLLIN, 0};
  int ready = 0;
  while (fd >= 0 && (ready = ::poll(&polled, 1, kWaitMs)) < 0 && errno == EINTR) {
  }
  if (fd >= 0) ::close(fd);
  const bool is_late = fd >= 0 && ready == 0;
  if (is_late) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_late) return Error(Code::kTimeout, words[0] + " has not ended after 5 s");
  if (status != 0) return Error(Code::kIo, words[0] + ": wait status " + std::to_string(status));
  return {};
}

}  // namespace

// -c: the paths are taken as they are, nobody looks below the mount. -f, --fake: only the table.
Status add_helper_entry(const std::string& source, const std::string& mountpoint) {
  return run({"/bin/mount", "-c", "-i", "-f", "-t", "fuse.kvsyncfs", "-o", "x-kvsyncfs", "--",
              source, mountpoint});
}

Status drop_helper_entry(const std::string& mountpoint) {
  return run({"/bin/umount", "-c", "-i", "--fake", "--", mountpoint});
}

}  // namespace kvsyncfs
