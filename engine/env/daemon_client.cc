#include "engine/env/daemon_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace kvsyncfs {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int kRetryMs = 10;  // a full queue of a Unix socket has no event

class Question {
 public:
  Question(const std::string& socket, int timeout_ms, int interrupt_fd)
      : socket_(socket),
        interrupt_fd_(interrupt_fd),
        deadline_(SteadyClock::now() + std::chrono::milliseconds(timeout_ms)),
        fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~Question() {
    if (fd_ >= 0) ::close(fd_);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  Status connect() const {
    if (fd_ < 0) return failure();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_.size() >= sizeof(address.sun_path)) return Error(Code::kNameTooLong, socket_);
    std::memcpy(address.sun_path, socket_.c_str(), socket_.size() + 1);
    const auto* name = reinterpret_cast<const sockaddr*>(&address);
    while (::connect(fd_, name, sizeof(address)) != 0) {
      if (errno == ECONNREFUSED) return Error(Code::kNotFound, socket_ + ": nobody listens");
      if (errno != EAGAIN && errno != EINTR) return failure();
      KVSYNCFS_TRY(wait(0));
    }
    return {};
  }

  Status send(std::string_view line) const {
    while (!line.empty()) {
      const ssize_t sent = ::send(fd_, line.data(), line.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        line.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        KVSYNCFS_TRY(wait(POLLOUT));
      } else if (errno != EINTR) {
        return failure();
      }
    }
    return {};
  }

  Result<std::string> receive() const {
    std::string answer;
    std::array<char, 4096> part;
    for (;;) {
      const ssize_t size = ::recv(fd_, part.data(), part.size(), 0);
      // A daemon that did not read all that was sent closes with a reset behind its answer.
      if (size == 0 || (size < 0 && errno == ECONNRESET)) {
        if (!answer.ends_with('\n'))
          return Error(Code::kStale, socket_ + ": closed without an answer");
        return answer;
      }
      if (size > 0) {
        answer.append(part.data(), static_cast<std::size_t>(size));
        if (answer.size() > kAnswerSizeMax)
          return Error(Code::kTooBig, socket_ + ": the answer does not end");
      } else if (errno == EAGAIN) {
        KVSYNCFS_TRY(wait(POLLIN));
      } else if (errno != EINTR) {
        return failure();
      }
    }
  }

  pid_t peer() const {
    ucred peer{};
    socklen_t size = sizeof(peer);
    return ::getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
  }

 private:
  Error failure() const {
    const int error = errno;
    // Of a daemon that has hung up; what it had answered is not whole.
    if (error == EPIPE) return Error(Code::kStale, socket_ + ": closed without an answer");
    return Error(from_errno(error), socket_ + ": " + std::strerror(error));
  }

  /// Until the socket is ready for `events`; without events only a moment.
  Status wait(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
    if (left.count() <= 0) return Error(Code::kTimeout, socket_ + ": no answer in time");
    const int left_ms = static_cast<int>(left.count());
    std::array polled = {pollfd{interrupt_fd_, POLLIN, 0},
                         pollfd{events != 0 ? fd_ : -1, events, 0}};
    const int ready =
        ::poll(polled.data(), polled.size(), events != 0 ? left_ms : std::min(left_ms, kRetryMs));
    if (ready < 0 && errno != EINTR) return failure();
    if (ready > 0 && polled[0].revents != 0) return Error(Code::kShutdown, "interrupted");
    return {};
  }

  const std::string& socket_;
  const int interrupt_fd_;
  const SteadyClock::time_point deadline_;
  const int fd_;
};

}  // namespace

std::string socket_name(std::uint64_t device) {
  return std::to_string(major(device)) + "-" + std::to_string(minor(device)) + ".sock";
}

Result<DaemonAnswer> ask(const std::string& socket, std::string_view request, int timeout_ms,
                         int interrupt_fd) {
  const Question question(socket, timeout_ms, interrupt_fd);
  KVSYNCFS_TRY(question.connect());
  KVSYNCFS_TRY(question.send(std::string(request) + "\n"));
  DaemonAnswer answer;
  KVSYNCFS_ASSIGN(answer.text, question.receive());
  answer.pid = question.peer();
  return answer;
}

}  // namespace kvsyncfs
