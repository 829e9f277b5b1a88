// Answers requests one after the other in a thread of its own, so that one that takes its time
// holds up nobody else. One answer is for all equal requests that came before it was begun. Thread:
// one caller, which waits on event_fd().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

class AnswerRunner {
 public:
  struct Completion {
    std::uint64_t ticket = 0;
    std::string answer;
  };

  explicit AnswerRunner(std::function<std::string(std::string_view request)> answer);
  ~AnswerRunner();  ///< as stop()
  AnswerRunner(const AnswerRunner&) = delete;
  AnswerRunner& operator=(const AnswerRunner&) = delete;

  /// Errors: kNoMemory.
  Status start();
  /// Waits for the request that is being answered; no other one is. event_fd() becomes readable.
  void stop();
  bool is_stopped() const { return is_stopped_; }

  /// A ticket, from 1. The caller bounds how many wait.
  std::uint64_t request(std::string text);
  /// Nobody waits for it any more: it is not begun.
  void cancel(std::uint64_t ticket);
  /// Readable when there are completions, or after stop().
  int event_fd() const { return event_; }
  std::vector<Completion> take_completions();

 private:
  struct Waiting {
    std::uint64_t ticket = 0;
    std::string request;
  };
  void run();
  std::vector<std::uint64_t> take_equal(const std::string& request);  ///< mutex_ is held

  const std::function<std::string(std::string_view)> answer_;
  int event_ = -1;
  std::mutex mutex_;  // a leaf; guards the next four
  std::condition_variable changed_;
  std::uint64_t asked_ = 0;
  std::deque<Waiting> queue_;
  std::vector<Completion> completions_;
  std::atomic<bool> is_stopped_ = false;
  std::thread thread_;
};

}  // namespace kvsyncfs
