#include "fs/daemonize.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace kvsyncfs {

namespace {

void print_line(const std::string& line) { std::fprintf(stderr, "kvsyncfs: %s\n", line.c_str()); }

/// The first byte is 'R' for ready or 'F' for failed, then the line.
int wait_for_verdict(int fd, pid_t child) {
  std::string said;
  char buffer[512];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    said.append(buffer, static_cast<std::size_t>(n));
    if (said[0] == 'R') return 0;
  }
  if (!said.empty() && said[0] == 'F') {
    print_line(said.substr(1));
    return 1;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  print_line("the daemon ended before the mount was ready (" +
             (WIFSIGNALED(status) ? std::string(strsignal(WTERMSIG(status)))
                                  : "exit status " + std::to_string(WEXITSTATUS(status))) +
             ")");
  return 1;
}

}  // namespace

Verdict::~Verdict() {
  if (fd_ >= 0) ::close(fd_);
}

void Verdict::ready() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return;
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = 0; null >= 0 && stream <= 2; ++stream) ::dup2(null, stream);
  if (null > 2) ::close(null);
  [[maybe_unused]] const ssize_t told =
      ::write(fd, "R", 1);  // a parent that was killed does not matter
  ::close(fd);
}

void Verdict::failed(const std::string& line) {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return print_line(line);
  const std::string message = "F" + line;
  [[maybe_unused]] const ssize_t told = ::write(fd, message.data(), message.size());
  ::close(fd);
}

int run_daemon(bool foreground, const std::function<int(Verdict&)>& work) {
  if (foreground) {
    Verdict verdict(-1);
    return work(verdict);
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    print_line(std::string("cannot make a pipe: ") + std::strerror(errno));
    return 1;
  }
  const pid_t child = ::fork();
  if (child < 0) {
    print_line(std::string("cannot fork: ") + std::strerror(errno));
    return 1;
  }
  if (child > 0) {
    ::close(ends[1]);
    const int status = wait_for_verdict(ends[0], child);
    ::close(ends[0]);
    return status;
  }
  ::close(ends[0]);
  ::setsid();
  Verdict verdict(ends[1]);
  return work(verdict);
}

}  // namespace kvsyncfs
