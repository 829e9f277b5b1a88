// The bytes of one simulated file: sparse pages that are shared between copies until one is
// changed. Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

class SimImage {
 public:
  std::uint64_t size() const { return size_; }
  /// Bytes past the new end are gone, new ones are zeros.
  void resize(std::uint64_t size);
  /// Grows the image if need be.
  void write(std::uint64_t offset, Bytes bytes);
  /// Requires offset + out.size() <= size().
  void read(std::uint64_t offset, MutableBytes out) const;

 private:
  using Page = std::array<std::byte, kPageSize>;
  std::map<std::uint64_t, std::shared_ptr<const Page>> pages_;  // an absent one is zeros
  std::uint64_t size_ = 0;
};

/// A change of a file that is not on stable storage yet.
struct SimChange {
  enum class Kind { kWrite, kGrow, kTruncate } kind = Kind::kWrite;
  std::uint64_t offset = 0;  ///< kWrite
  std::string bytes;         ///< kWrite
  std::uint64_t size = 0;    ///< kGrow: at least; kTruncate: exactly
};

/// Deterministic on every platform, which the standard distributions are not.
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

/// All of `change`.
void apply(SimImage& image, const SimChange& change);

/// What a power cut leaves of `change`: all, nothing, or some of its sectors, each whole or torn. A
/// file may have grown without the bytes, or lose bytes because it did not grow.
void apply_some(SimImage& image, const SimChange& change, std::uint64_t sector_size,
                SimRandom& random);

}  // namespace kvsyncfs
