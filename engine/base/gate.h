// Lets calls in that may come late, until what they come to is gone. Thread: any.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace kvsyncfs {

class Gate {
 public:
  /// Runs `pass` unless the gate is closed, and holds close() up meanwhile.
  template <typename F>
  void enter(F&& pass) {
    std::shared_lock lock(mutex_);
    if (is_open_) pass();
  }
  void close() {
    std::unique_lock lock(mutex_);
    is_open_ = false;
  }

 private:
  std::shared_mutex mutex_;
  bool is_open_ = true;
};

}  // namespace kvsyncfs
