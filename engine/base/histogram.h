// Latency histogram: log-linear, 64 steps per power of two, so that a percentile is never below the
// truth and at most 1/64 above it.
//
// Thread: Histogram any, without locks; a snapshot taken while others record may miss the newest
// values, but never counts one twice, and later snapshots never show less. HistogramSnapshot:
// values.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvsyncfs {

/// Where a value is counted. Values up to 127 have a bucket each.
struct HistogramBuckets {
  static constexpr unsigned kStepBits = 6;
  static constexpr std::uint64_t kSteps = std::uint64_t{1} << kStepBits;
  static constexpr unsigned kValueBits = 42;  ///< 73 minutes in nanoseconds
  static constexpr std::uint64_t kValueMax = (std::uint64_t{1} << kValueBits) - 1;
  static constexpr std::size_t kCount = (kValueBits - kStepBits + 1) * kSteps;

  /// Bucket of `value`; what is larger than kValueMax goes into the last.
  static constexpr std::size_t index(std::uint64_t value) {
    if (value > kValueMax) return kCount - 1;
    if (value < 2 * kSteps) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kStepBits - 1;
    return static_cast<std::size_t>(shift * kSteps + (value >> shift));
  }
  /// Largest value of a bucket.
  static constexpr std::uint64_t upper_bound(std::size_t index) {
    if (index < 2 * kSteps) return index;
    const std::uint64_t shift = index / kSteps - 1;
    return ((index % kSteps + kSteps + 1) << shift) - 1;
  }
};

/// What a histogram held at one moment.
class HistogramSnapshot {
 public:
  HistogramSnapshot() : counts_(HistogramBuckets::kCount) {}

  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }
  /// Smallest value that at least `percent` (0 to 100) of the values do not exceed, rounded up to
  /// its bucket but not above max(). 0 if nothing was recorded.
  std::uint64_t percentile(double percent) const;

 private:
  friend class Histogram;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

class Histogram {
 public:
  Histogram() = default;
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  /// Counts one value (nanoseconds, by custom). One atomic add, no allocation.
  void record(std::uint64_t value) {
    counts_[HistogramBuckets::index(value)].fetch_add(1, std::memory_order_relaxed);
    std::uint64_t seen = max_.load(std::memory_order_relaxed);
    while (value > seen && !max_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  HistogramSnapshot snapshot() const;

 private:
  std::array<std::atomic<std::uint64_t>, HistogramBuckets::kCount> counts_{};
  std::atomic<std::uint64_t> max_{0};
};

}  // namespace kvsyncfs
