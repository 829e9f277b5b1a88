// Appends to segments whose bytes nothing in the catalog refers to yet.
//
// A segment may be full and sealed while an append's bytes in it are not committed, and looks empty
// then. So it is deleted only when every append has ended that began before it was seen sealed; who
// begins later gets another segment, and waits for nobody. ARCHITECTURE.md, "A segment is deleted
// only while every appended byte is referred to". Thread: any; a leaf mutex.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "engine/env/deadline.h"

namespace kvsyncfs {

class UnreferencedAppends {
 public:
  /// An append, from before it until its bytes are referred to, or never will be. What refers to
  /// them need not have been applied: in the log it comes before a deletion that is appended later.
  class Hold {
   public:
    explicit Hold(UnreferencedAppends& all) : all_(&all), number_(all.begin()) {}
    Hold(Hold&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), number_(other.number_) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(all_, other.all_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Hold() { end(); }
    void end() {
      if (all_ != nullptr) std::exchange(all_, nullptr)->end(number_);
    }

   private:
    UnreferencedAppends* all_;
    std::uint64_t number_;
  };

  /// Until all have ended that began before this call. False: not in time.
  bool wait_for_earlier(const Deadline& until) {
    std::unique_lock lock(mutex_);
    const std::uint64_t next = next_;
    return until.wait(ended_, lock,
                      [&] { return under_way_.empty() || *under_way_.begin() >= next; });
  }

 private:
  std::uint64_t begin() {
    std::lock_guard lock(mutex_);
    return *under_way_.insert(next_++).first;
  }
  void end(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    under_way_.erase(number);
    ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  std::uint64_t next_ = 0;
  std::set<std::uint64_t> under_way_;
};

}  // namespace kvsyncfs
