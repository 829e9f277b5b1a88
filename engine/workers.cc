#include "engine/workers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace kvsyncfs {

namespace {

/// What the engine's threads and the worker share. The engine keeps its wakeup for life, so this
/// lives as long as either of them (shared_ptr), and a late wakeup meets no freed memory.
struct Signal {
  std::mutex mutex;  // a leaf: nothing is called while it is held
  std::condition_variable changed;
  bool is_woken = false;
  bool is_stopped = false;

  void wake() {
    {
      std::lock_guard lock(mutex);
      if (is_woken) return;
      is_woken = true;
    }
    changed.notify_one();
  }
  void stop() {
    {
      std::lock_guard lock(mutex);
      is_stopped = true;
    }
    changed.notify_one();
  }
  /// Waits until a wakeup, stop() or the passing of `wait_ns`. False: stop.
  bool wait(std::uint64_t wait_ns) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                     [this] { return is_woken || is_stopped; });
    is_woken = false;
    return !is_stopped;
  }
};

constexpr std::uint64_t kWaitMaxNs = 60'000'000'000;  // bounds the wait whatever the engine asks

}  // namespace

struct Workers::Impl {
  Impl(Engine& engine, Clock& clock) : engine_(engine), clock_(clock) {
    engine.set_wakeup([signal = signal_] { signal->wake(); });
    thread_ = std::thread([this] { run(); });
  }
  ~Impl() {
    signal_->stop();
    thread_.join();
  }

  void run() {
    std::uint64_t wait_ns = 0;
    while (signal_->wait(wait_ns)) {
      const std::uint64_t due_ns = engine_.run_background();
      const std::uint64_t now_ns = clock_.boot_ns();
      wait_ns = due_ns > now_ns ? std::min(due_ns - now_ns, kWaitMaxNs) : 0;
    }
  }

  Engine& engine_;
  Clock& clock_;
  std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
  std::thread thread_;
};

Workers::Workers(Engine& engine, Clock& clock) : impl_(std::make_unique<Impl>(engine, clock)) {}
Workers::~Workers() = default;

}  // namespace kvsyncfs
