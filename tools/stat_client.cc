#include "tools/stat_client.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "engine/env/daemon_client.h"

namespace kvsyncfs {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int kRetryMs = 10;  // before a daemon that hung up is asked again

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
  using std::chrono::milliseconds;
  const auto end = SteadyClock::now() + milliseconds(timeout_ms);
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - SteadyClock::now()).count();
    const int left_ms = static_cast<int>(std::max<std::int64_t>(left, 0));
    auto answer = ask(socket, "stats", left_ms, interrupt_fd);
    if (answer) return std::move(answer->text);
    if (answer.error().code != Code::kStale) return answer.error();
    if (left_ms <= kRetryMs) return Error(Code::kBusy, answer.error().detail);
    pollfd polled{interrupt_fd, POLLIN, 0};
    if (::poll(&polled, 1, kRetryMs) > 0) return Error(Code::kShutdown, "interrupted");
  }
}

}  // namespace kvsyncfs
