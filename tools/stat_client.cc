#include "tools/stat_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
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
constexpr int kRetryMs = 10;  // between attempts to reach a daemon whose queue is full

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// One connection: knows the deadline and whom to name in an error.
class Question {
 public:
  Question(const std::string& socket, SteadyClock::time_point deadline, int interrupt_fd)
      : socket_(socket),
        deadline_(deadline),
        interrupt_fd_(interrupt_fd),
        fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

  /// Errors: those of ask_daemon; kBusy: the daemon closed without an answer, ask again.
  Result<std::string> ask() const {
    if (fd_.get() < 0) return failure("socket", errno);
    KVSYNCFS_TRY(connect());
    KVSYNCFS_TRY(send("stats\n"));
    return receive();
  }

  Status pause() const { return wait(0, kRetryMs); }

 private:
  Error failure(std::string_view call, int error) const {
    const std::string what = fmt::format("{} {}", call, socket_);
    if (error == ECONNREFUSED) return {Code::kNotFound, what + ": connection refused"};
    if (error == EPIPE || error == ECONNRESET) return hung_up();
    return {from_errno(error), what};
  }
  Error hung_up() const { return {Code::kBusy, socket_ + ": closed without an answer"}; }

  /// Waits until the socket is ready for `events`, or only lets `pause_ms` pass if there are none.
  Status wait(short events, int pause_ms = -1) const {
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
      const int left_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
      const int wait_ms = pause_ms < 0 ? left_ms : std::min(left_ms, pause_ms);
      std::array polled = {pollfd{interrupt_fd_, POLLIN, 0},
                           pollfd{events != 0 ? fd_.get() : -1, events, 0}};
      const int ready = ::poll(polled.data(), polled.size(), wait_ms);
      if (ready < 0 && errno != EINTR) return failure("poll", errno);
      if (ready > 0 && polled[0].revents != 0) return Error(Code::kShutdown, "interrupted");
      if (ready > 0) return {};
      if (left_ms == 0) {
        return Error(Code::kTimeout, socket_ + ": no answer");
      }
      if (ready == 0 && pause_ms >= 0) return {};
    }
  }

  Status connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_.size() >= sizeof(address.sun_path)) return failure("connect", ENAMETOOLONG);
    std::memcpy(address.sun_path, socket_.c_str(), socket_.size() + 1);
    while (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
           0) {
      // EAGAIN: the daemon's queue of connections is full; a Unix socket has no event for that.
      if (errno != EAGAIN && errno != EINTR) return failure("connect", errno);
      KVSYNCFS_TRY(pause());
    }
    return {};
  }

  Status send(std::string_view line) const {
    while (!line.empty()) {
      const ssize_t sent = ::send(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        line.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        KVSYNCFS_TRY(wait(POLLOUT));
      } else if (errno != EINTR) {
        return failure("send", errno);
      }
    }
    return {};
  }

  Result<std::string> receive() const {
    std::string answer;
    std::array<char, 65536> part;
    for (;;) {
      const ssize_t size = ::recv(fd_.get(), part.data(), part.size(), 0);
      if (size == 0 && answer.empty()) return hung_up();
      if (size == 0) return answer;
      if (size > 0) {
        answer.append(part.data(), static_cast<std::size_t>(size));
        if (answer.size() > kStatAnswerSizeMax) {
          return Error(Code::kTooBig, socket_ + ": the answer does not end");
        }
      } else if (errno == EAGAIN) {
        KVSYNCFS_TRY(wait(POLLIN));
      } else if (errno != EINTR) {
        return failure("recv", errno);
      }
    }
  }

  const std::string& socket_;
  SteadyClock::time_point deadline_;
  int interrupt_fd_;
  Descriptor fd_;
};

}  // namespace

Interrupt::Interrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

Interrupt::~Interrupt() {
  if (fd_ >= 0) ::close(fd_);
}

bool Interrupt::wait(std::int64_t timeout_ms) const {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now());
    const auto wait_ms = std::clamp<std::int64_t>(left.count(), 0, 1'000'000);
    pollfd polled{fd_, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(wait_ms)) > 0) return true;
    if (left.count() <= 0) return false;
  }
}

Result<std::string> ask_daemon(const std::string& socket, int timeout_ms, int interrupt_fd) {
  const auto deadline = SteadyClock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const Question question(socket, deadline, interrupt_fd);
    auto answer = question.ask();
    if (answer || answer.error().code != Code::kBusy) return answer;
    const Status paused = question.pause();
    if (!paused) return paused.error().code == Code::kTimeout ? answer.error() : paused.error();
  }
}

}  // namespace kvsyncfs
