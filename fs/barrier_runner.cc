#include "fs/barrier_runner.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace kvsyncfs {

BarrierRunner::BarrierRunner(std::function<Status()> barrier) : barrier_(std::move(barrier)) {}

BarrierRunner::~BarrierRunner() {
  stop();
  if (event_ >= 0) ::close(event_);
}

Status BarrierRunner::start() {
  event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0) {
    return Error(Code::kNoMemory, std::string("cannot make an event: ") + std::strerror(errno));
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error(Code::kNoMemory, std::string("cannot start a thread: ") + error.what());
  }
  return {};
}

void BarrierRunner::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_one();
  if (event_ >= 0) signal();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t BarrierRunner::request() {
  std::uint64_t ticket = 0;
  {
    std::lock_guard lock(mutex_);
    ticket = ++asked_;
  }
  changed_.notify_one();
  return ticket;
}

std::vector<BarrierRunner::Completion> BarrierRunner::take_completions() {
  eventfd_t count = 0;
  ::eventfd_read(event_, &count);
  std::lock_guard lock(mutex_);
  return std::exchange(completions_, {});
}

void BarrierRunner::run() {
  std::uint64_t done = 0;
  for (;;) {
    std::uint64_t ticket = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_stopped_ || asked_ > done; });
      if (is_stopped_) return;
      ticket = asked_;
    }
    Status status = barrier_();
    {
      std::lock_guard lock(mutex_);
      completions_.push_back({ticket, std::move(status)});
    }
    done = ticket;
    signal();
  }
}

void BarrierRunner::signal() const { ::eventfd_write(event_, 1); }

}  // namespace kvsyncfs
