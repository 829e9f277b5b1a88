#include "engine/base/histogram.h"

#include <algorithm>
#include <cmath>

namespace kvsyncfs {

std::uint64_t HistogramSnapshot::percentile(double percent) const {
  if (count_ == 0) return 0;
  // Doubles round: without the margin 99.9 % of 1000 values would be the 1000th, not the 999th.
  const double exact = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_);
  const auto rounded = static_cast<std::uint64_t>(std::ceil(exact * (1 - 1e-12)));
  const auto rank = std::clamp<std::uint64_t>(rounded, 1, count_);
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
    passed += counts_[i];
    if (passed >= rank) return std::min(HistogramBuckets::upper_bound(i), max_);
  }
  return max_;  // the last bucket has no upper bound
}

HistogramSnapshot Histogram::snapshot() const {
  HistogramSnapshot result;
  std::size_t last = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    result.counts_[i] = counts_[i].load(std::memory_order_relaxed);
    result.count_ += result.counts_[i];
    if (result.counts_[i] != 0) last = i;
  }
  result.max_ = max_.load(std::memory_order_relaxed);
  // A value may be counted whose maximum is not stored yet: no percentile may lie above max().
  if (result.count_ != 0 && HistogramBuckets::index(result.max_) < last) {
    result.max_ = HistogramBuckets::upper_bound(last);
  }
  return result;
}

}  // namespace kvsyncfs
