// Bounds what this node has asked for and not yet received, from all peers together: answers of
// many peers at once would fill the receiver's link and collapse. Thread: any.
//
// A peer of whom nothing is outstanding may always be asked for one thing, so that a peer that is
// silent with much outstanding never holds up the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

namespace kvsyncfs {

class ReadBudget {
 public:
  ReadBudget(std::uint64_t size_max, std::uint64_t peer_size_max)
      : size_max_(size_max), peer_size_max_(peer_size_max) {}

  /// Takes `size` bytes for a peer with `peer_size` outstanding. False: not now; the next
  /// release() says that somebody waits.
  bool try_take(std::uint64_t peer_size, std::uint64_t size) {
    if (size == 0) return true;
    std::lock_guard lock(mutex_);
    const bool is_first = peer_size == 0;
    const bool fits = peer_size + size <= peer_size_max_ && size_ + size <= size_max_;
    if (!is_first && !fits) {
      somebody_waits_ = true;
      return false;
    }
    size_ += size;
    peak_ = std::max(peak_, size_);
    return true;
  }
  /// True: somebody waits, whose turn it may be now.
  bool release(std::uint64_t size) {
    if (size == 0) return false;
    std::lock_guard lock(mutex_);
    size_ -= size;
    return std::exchange(somebody_waits_, false);
  }
  std::uint64_t peak() const {
    std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  const std::uint64_t size_max_, peer_size_max_;
  mutable std::mutex mutex_;  // a leaf
  std::uint64_t size_ = 0, peak_ = 0;
  bool somebody_waits_ = false;
};

}  // namespace kvsyncfs
