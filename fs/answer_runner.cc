#include "fs/answer_runner.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fs/quiet_thread.h"

namespace kvsyncfs {

AnswerRunner::AnswerRunner(std::function<std::string(std::string_view)> answer)
    : answer_(std::move(answer)) {}

AnswerRunner::~AnswerRunner() {
  stop();
  if (event_ >= 0) ::close(event_);
}

Status AnswerRunner::start() {
  event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0)
    return Error(Code::kNoMemory, std::string("cannot make an event: ") + std::strerror(errno));
  return start_quiet_thread(thread_, [this] { run(); });
}

void AnswerRunner::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_one();
  if (event_ >= 0) ::eventfd_write(event_, 1);
  if (thread_.joinable()) thread_.join();
}

std::uint64_t AnswerRunner::request(std::string text) {
  std::uint64_t ticket = 0;
  {
    std::lock_guard lock(mutex_);
    ticket = ++asked_;
    queue_.push_back({ticket, std::move(text)});
  }
  changed_.notify_one();
  return ticket;
}

void AnswerRunner::cancel(std::uint64_t ticket) {
  std::lock_guard lock(mutex_);
  std::erase_if(queue_, [ticket](const Waiting& waiting) { return waiting.ticket == ticket; });
}

std::vector<AnswerRunner::Completion> AnswerRunner::take_completions() {
  eventfd_t count = 0;
  ::eventfd_read(event_, &count);
  std::lock_guard lock(mutex_);
  return std::exchange(completions_, {});
}

std::vector<std::uint64_t> AnswerRunner::take_equal(const std::string& request) {
  std::vector<std::uint64_t> tickets;
  std::erase_if(queue_, [&](const Waiting& waiting) {
    if (waiting.request != request) return false;
    tickets.push_back(waiting.ticket);
    return true;
  });
  return tickets;
}

void AnswerRunner::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || !queue_.empty(); });
    if (is_stopped_) return;
    const std::string request = queue_.front().request;
    const std::vector<std::uint64_t> tickets = take_equal(request);
    lock.unlock();
    const std::string answer = answer_(request);
    lock.lock();
    for (const std::uint64_t ticket : tickets) completions_.push_back({ticket, answer});
    ::eventfd_write(event_, 1);
  }
}

}  // namespace kvsyncfs
