// Makes the calls of a MemoryDisk stand still, so that a test can look while one is under way.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tests/lib/memory_disk.h"

namespace kvsyncfs {

/// Operations of a kind on paths that contain `part` stand still until let_go(). The disk may
/// outlive it.
class Gate {
 public:
  Gate(DiskOperation operation, std::string part) {
    state_->operation = operation;
    state_->part = std::move(part);
  }

  /// From now on, while nothing runs.
  void hold(MemoryDisk& disk) {
    disk.set_hook([state = state_](DiskRequest& request) {
      state->pass(request);
      return Status{};
    });
  }
  void wait_for_one() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->waiting > 0; });
  }
  void let_go() {
    std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    void pass(const DiskRequest& request) {
      if (request.operation != operation || request.path.find(part) == std::string::npos) return;
      std::unique_lock lock(mutex);
      ++waiting;
      changed.notify_all();
      changed.wait(lock, [&] { return open; });
    }

    DiskOperation operation = DiskOperation::kOpen;
    std::string part;
    std::mutex mutex;
    std::condition_variable changed;
    int waiting = 0;
    bool open = false;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();  ///< the disk's too: it may live on
};

}  // namespace kvsyncfs
