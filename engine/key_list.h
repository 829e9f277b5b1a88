// The first keys of a listing, in byte order, as they are met in any order: at most so many are
// held. Thread: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvsyncfs {

class KeyList {
 public:
  /// Of the keys that start with `prefix`, after `after` if it is not empty. Both outlive the list.
  KeyList(std::string_view prefix, std::size_t count_max, std::string_view after)
      : prefix_(prefix), after_(after), count_max_(count_max) {}

  /// Keeps it, if it is one of the first.
  void add(std::string key) {
    if (!key.starts_with(prefix_) || (!after_.empty() && key <= after_)) return;
    if (keys_.size() == count_max_) {
      if (count_max_ == 0 || key >= keys_.front()) return;
      std::pop_heap(keys_.begin(), keys_.end());
      keys_.pop_back();
    }
    keys_.push_back(std::move(key));
    std::push_heap(keys_.begin(), keys_.end());
  }

  /// May a key that starts with `path` be one of the first?
  bool wants_below(std::string_view path) const {
    const std::size_t common = std::min(path.size(), prefix_.size());
    if (path.substr(0, common) != prefix_.substr(0, common)) return false;
    if (path < after_ && !after_.starts_with(path)) return false;
    return keys_.size() < count_max_ || (count_max_ > 0 && path < keys_.front());
  }

  /// Sorted; the list is empty then.
  std::vector<std::string> take() {
    std::sort_heap(keys_.begin(), keys_.end());
    return std::exchange(keys_, {});
  }

 private:
  const std::string_view prefix_, after_;
  const std::size_t count_max_;
  std::vector<std::string> keys_;  // a heap, the last one in front
};

}  // namespace kvsyncfs
