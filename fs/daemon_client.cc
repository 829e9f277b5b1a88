#include "fs/daemon_client.h"

#include <poll.h>
#include <sys/socket.h>
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
constexpr std::size_t kAnswerSizeMax = 16u << 20;

class Question {
 public:
  Question(const std::string& socket, int timeout_ms)
      : socket_(socket),
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
        if (!answer.ends_with('\n')) return Error(Code::kStale, socket_ + ": no answer");
        return answer;
      }
      if (size > 0) {
        answer.append(part.data(), static_cast<std::size_t>(size));
        if (answer.size() > kAnswerSizeMax) return Error(Code::kIo, socket_ + ": endless answer");
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
    return Error(from_errno(error), socket_ + ": " + std::strerror(error));
  }

  /// Until the socket is ready for `events`; without events only a moment.
  Status wait(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
    if (left.count() <= 0) return Error(Code::kTimeout, socket_ + ": no answer in time");
    const int left_ms = static_cast<int>(left.count());
    pollfd polled{events != 0 ? fd_ : -1, events, 0};
    if (::poll(&polled, 1, events != 0 ? left_ms : std::min(left_ms, kRetryMs)) < 0 &&
        errno != EINTR) {
      return failure();
    }
    return {};
  }

  const std::string& socket_;
  const SteadyClock::time_point deadline_;
  const int fd_;
};

}  // namespace

Result<DaemonAnswer> ask(const std::string& socket, std::string_view request, int timeout_ms) {
  const Question question(socket, timeout_ms);
  KVSYNCFS_TRY(question.connect());
  KVSYNCFS_TRY(question.send(std::string(request) + "\n"));
  DaemonAnswer answer;
  KVSYNCFS_ASSIGN(answer.text, question.receive());
  answer.pid = question.peer();
  return answer;
}

}  // namespace kvsyncfs
