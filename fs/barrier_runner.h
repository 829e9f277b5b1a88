// Runs barriers one after the other in a thread of its own. One run answers all requests that came
// before it began. Thread: one caller, which waits on event_fd().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

class BarrierRunner {
 public:
  struct Completion {
    std::uint64_t ticket;  ///< this request and all before it are answered
    Status status;
  };

  explicit BarrierRunner(std::function<Status()> barrier);
  ~BarrierRunner();  ///< as stop()
  BarrierRunner(const BarrierRunner&) = delete;
  BarrierRunner& operator=(const BarrierRunner&) = delete;

  /// Errors: kNoMemory.
  Status start();
  /// Waits for the run that is under way and starts no other; event_fd() becomes readable.
  void stop();
  bool is_stopped() const { return is_stopped_; }

  /// Asks for a barrier; its ticket, from 1.
  std::uint64_t request();
  /// Readable when there are completions, or after stop().
  int event_fd() const { return event_; }
  std::vector<Completion> take_completions();

 private:
  void run();
  void signal() const;

  const std::function<Status()> barrier_;
  int event_ = -1;
  std::mutex mutex_;  ///< a leaf: guards the next three
  std::condition_variable changed_;
  std::uint64_t asked_ = 0;
  std::vector<Completion> completions_;
  std::atomic<bool> is_stopped_ = false;
  std::thread thread_;
};

}  // namespace kvsyncfs
