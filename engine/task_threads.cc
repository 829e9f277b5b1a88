#include "engine/task_threads.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace kvsyncfs {
namespace {
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kWaitMaxNs = 60'000'000'000;  // bounds the wait whatever a step asks
}  // namespace

struct TaskThreads::Impl {
  explicit Impl(Clock& the_clock) : clock(the_clock) {}

  void run(const std::function<std::uint64_t()>& step) {
    for (std::uint64_t due_ns = 0; due_ns != kNever; due_ns = step()) {
      std::unique_lock lock(mutex);
      if (is_stopped) return;
      const std::uint64_t now_ns = clock.boot_ns();
      if (due_ns <= now_ns) continue;  // a wait of no time costs a timer and a change of threads
      const std::uint64_t wait_ns = std::min(due_ns - now_ns, kWaitMaxNs);
      if (stopped.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return is_stopped; }))
        return;
    }
  }

  Clock& clock;
  std::mutex mutex;
  std::condition_variable stopped;
  bool is_stopped = false;
  std::vector<std::thread> threads;
};

TaskThreads::TaskThreads(Clock& clock) : impl_(std::make_unique<Impl>(clock)) {}
TaskThreads::~TaskThreads() { stop(); }

void TaskThreads::start(std::string_view, std::function<std::uint64_t()> step) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->is_stopped) return;
  impl_->threads.emplace_back([this, step = std::move(step)] { impl_->run(step); });
}

void TaskThreads::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->is_stopped = true;
    threads.swap(impl_->threads);
  }
  impl_->stopped.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace kvsyncfs
