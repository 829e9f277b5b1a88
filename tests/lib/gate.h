// Makes the calls of a MemoryDisk stand still, so that a test can look while one is under way.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "tests/lib/memory_disk.h"

namespace kvsyncfs {

/// Operations of a kind on paths that contain `part` stand still until let_go(). Outlives the
/// disk's use of it.
class Gate {
 public:
  Gate(DiskOperation operation, std::string part) : operation_(operation), part_(std::move(part)) {}

  /// From now on, while nothing runs.
  void hold(MemoryDisk& disk) {
    disk.set_hook([this](DiskRequest& request) {
      pass(request);
      return Status{};
    });
  }
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }
  void let_go() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  void pass(const DiskRequest& request) {
    if (request.operation != operation_ || request.path.find(part_) == std::string::npos) return;
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }

  const DiskOperation operation_;
  const std::string part_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

}  // namespace kvsyncfs
