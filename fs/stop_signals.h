// SIGTERM, SIGINT and SIGHUP as an orderly end. They are blocked in the thread
// that makes the object and in all that it starts later, so that only the
// waiting thread of this object sees them. Thread: make it before any other
// thread.
#pragma once

#include <functional>
#include <mutex>
#include <thread>

namespace kvsyncfs {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  ///< waits for the action, if it runs
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// What the first signal does, in this object's thread; at once, if one came
  /// already. Empty: nothing any more, and the call waits for an action that
  /// runs.
  void set_action(std::function<void()> action);

 private:
  void wait();

  int signals_ = -1;  // signalfd
  int end_ = -1;      // eventfd
  std::mutex mutex_;  // guards the next two; held while the action runs
  std::function<void()> action_;
  bool is_signalled_ = false;
  std::thread thread_;
};

}  // namespace kvsyncfs
