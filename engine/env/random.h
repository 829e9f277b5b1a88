// Random numbers as the engine sees them; the simulated twin is seeded. Thread: any.
#pragma once

#include <cstdint>

namespace kvsyncfs {

class Random {
 public:
  virtual ~Random() = default;
  /// 64 uniform random bits.
  virtual std::uint64_t next() = 0;
};

}  // namespace kvsyncfs
