#include "fs/moved_entries.h"

#include <utility>

#include "fs/quiet_thread.h"

namespace kvsyncfs {

namespace {
constexpr std::size_t kNamesMax = 4096;
}

Status MovedEntries::start() {
  return start_quiet_thread(thread_, [this] { run(); });
}

void MovedEntries::add(InodeId parent, std::string_view name) {
  {
    std::lock_guard lock(mutex_);
    if (names_.size() == kNamesMax) names_.pop_front();
    names_.push_back({parent, std::string(name)});
  }
  changed_.notify_one();
}

void MovedEntries::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void MovedEntries::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || !names_.empty(); });
    if (is_stopped_) return;
    const Name next = std::move(names_.front());
    names_.pop_front();
    lock.unlock();
    forget_(next.parent, next.name);
    lock.lock();
  }
}

}  // namespace kvsyncfs
