#include "fs/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace kvsyncfs {

StopSignals::StopSignals() {
  sigset_t stops;
  ::sigemptyset(&stops);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&stops, number);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = ::signalfd(-1, &stops, SFD_CLOEXEC);
  end_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { wait(); });
}

StopSignals::~StopSignals() {
  ::eventfd_write(end_, 1);
  thread_.join();
  ::close(signals_);
  ::close(end_);
}

void StopSignals::set_action(std::function<void()> action) {
  std::lock_guard lock(mutex_);
  action_ = std::move(action);
  if (is_signalled_ && action_) std::exchange(action_, nullptr)();
}

void StopSignals::wait() {
  for (;;) {
    pollfd polled[2] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
    if (::poll(polled, 2, -1) < 0) continue;
    if (polled[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) continue;
    std::lock_guard lock(mutex_);
    is_signalled_ = true;
    if (action_) std::exchange(action_, nullptr)();
  }
}

}  // namespace kvsyncfs
