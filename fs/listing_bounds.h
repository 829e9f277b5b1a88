// Where a stream of a directory ends, so that a program that makes a file for each one it is shown
// comes to an end. Entries are listed in the order of their cookies, which is that of creation:
// what is made after a stream has begun lies behind its bound.
//
// By directory and not by stream, since nothing is opened: a later stream moves the bound of an
// earlier one on, never back, so none misses an entry that was there when it began. Of a directory
// that is not known here any more a stream shows all. Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "engine/base/ids.h"

namespace kvsyncfs {

class ListingBounds {
 public:
  /// A stream begins; `newest` is the largest cookie that an entry may have by now.
  void begin(InodeId directory, std::uint64_t newest) {
    std::lock_guard lock(mutex_);
    if (bounds_.size() == kDirectoriesMax && !bounds_.contains(directory)) bounds_.clear();
    std::uint64_t& bound = bounds_[directory];
    bound = std::max(bound, newest);
  }
  /// The largest cookie that a stream of the directory shows.
  std::uint64_t end(InodeId directory) const {
    std::lock_guard lock(mutex_);
    const auto it = bounds_.find(directory);
    return it == bounds_.end() ? std::numeric_limits<std::uint64_t>::max() : it->second;
  }

 private:
  static constexpr std::size_t kDirectoriesMax = 4096;
  mutable std::mutex mutex_;
  std::unordered_map<InodeId, std::uint64_t> bounds_;
};

}  // namespace kvsyncfs
