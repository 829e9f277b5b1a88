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

/// The first byte is 'R' for ready or 'F' for failed, then a line; the end of
/// the pipe ends it.
int wait_for_verdict(int fd, pid_t child) {
  std::string said;
  char buffer[512];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    said.append(buffer, static_cast<std::size_t>(n));
  }
  if (!said.empty()) {
    if (said.size() > 1) print_line(said.substr(1));
    return said[0] == 'R' ? 0 : 1;
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

void Verdict::tell(char word, const std::string& line) {
  const std::string message = word + line;
  // A parent that was killed does not matter.
  [[maybe_unused]] const ssize_t told = ::write(fd_, message.data(), message.size());
  ::close(std::exchange(fd_, -1));
}

void Verdict::ready(const std::string& warning) {
  if (fd_ < 0) {
    if (!warning.empty()) print_line(warning);
    return;
  }
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = 0; null >= 0 && stream <= 2; ++stream) ::dup2(null, stream);
  if (null > 2) ::close(null);
  tell('R', warning);
}

void Verdict::failed(const std::string& line) {
  if (fd_ < 0) return print_line(line);
  tell('F', line);
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
