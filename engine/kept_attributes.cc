#include "engine/kept_attributes.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kvsyncfs {

namespace {
constexpr std::chrono::milliseconds kIdle{100};
/// The kernel may look so much later at an answer than it came, and so keep what is in it.
constexpr std::uint64_t kLateNs = 1'000'000'000;
constexpr std::chrono::microseconds kPause{200};
constexpr int kPauses = 500;
}  // namespace

void KeptAttributes::set_forget(Forget forget, IsRetained is_retained) {
  std::lock_guard no_call(forget_mutex_);
  std::lock_guard lock(mutex_);
  has_forget_ = static_cast<bool>(forget);
  forget_ = std::move(forget);
  is_retained_ = std::move(is_retained);
  if (!has_forget_) until_.clear();
}

bool KeptAttributes::keep(InodeId inode, std::uint64_t until_ns, std::uint64_t now_ns) {
  if (until_ns <= now_ns) return false;
  std::lock_guard lock(mutex_);
  if (!has_forget_) return false;
  if (until_.size() >= kKeptMax)
    std::erase_if(until_, [now_ns](const auto& kept) { return kept.second + kLateNs <= now_ns; });
  if (until_.size() >= kKeptMax && !until_.contains(inode)) return false;
  std::uint64_t& until = until_[inode];
  until = std::max(until, until_ns);
  return true;
}

void KeptAttributes::changed(InodeId inode) {
  std::lock_guard lock(mutex_);
  if (until_.erase(inode) == 0) return;
  steps_.push_back({inode, {}});
  came_.notify_one();
}

void KeptAttributes::all_changed() {
  std::lock_guard lock(mutex_);
  for (const auto& [inode, until] : until_) steps_.push_back({inode, {}});
  until_.clear();
  came_.notify_one();
}

void KeptAttributes::when_told(std::function<void()> then) {
  {
    std::lock_guard lock(mutex_);
    if (!steps_.empty()) {
      steps_.push_back({{}, std::move(then)});
      return;
    }
  }
  then();
}

void KeptAttributes::run() {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, kIdle, [this] { return !steps_.empty(); })) return;
  while (!steps_.empty()) {
    const Step step = std::move(steps_.front());
    lock.unlock();
    if (step.then)
      step.then();
    else
      tell(step.inode);
    lock.lock();
    steps_.pop_front();
  }
}

/// Where the kernel does not know an inode that is retained, the answer that it will know it from
/// has not been looked at yet, with the attributes in it (or its word that it forgets the inode has
/// not come).
void KeptAttributes::tell(InodeId inode) {
  std::condition_variable never;
  std::unique_lock telling(forget_mutex_);
  for (int i = 0; i < kPauses && forget_ && !forget_(inode) && is_retained_(inode); ++i)
    never.wait_for(telling, kPause);
}

}  // namespace kvsyncfs
