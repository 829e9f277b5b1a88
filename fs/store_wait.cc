#include "fs/store_wait.h"

#include <algorithm>
#include <thread>

#include "engine/env/mount_table.h"

namespace kvsyncfs {

namespace {

bool is_mounted(const std::string& store) {
  const auto table = read_mount_table();
  return table && std::any_of(table->begin(), table->end(), [&](const MountEntry& entry) {
           return entry.type == kMountType && entry.source == store;
         });
}

}  // namespace

Result<StoreLock> take_store(const std::string& store, std::chrono::seconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{50};
  const auto deadline = Clock::now() + patience;
  for (;;) {
    auto lock = StoreLock::take(store);
    const bool is_busy = !lock && lock.error().code == Code::kBusy;
    if (!is_busy || is_mounted(store) || Clock::now() >= deadline) return lock;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace kvsyncfs
