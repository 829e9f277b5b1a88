#include "engine/policy/hedge.h"

#include <algorithm>

namespace kvsyncfs {
namespace {

/// Most answers of a peer that is well come within so many of its round trips.
constexpr std::uint64_t kRoundTrips = 10;
/// A slow network's and disk's, together: 20 MB/s.
constexpr std::uint64_t kNsPerByte = 50;
constexpr std::uint64_t kNsPerCall = 2'000'000;  // of those before it

}  // namespace

std::uint64_t hedge_delay_ns(std::uint64_t round_trip_ns, std::size_t size_bytes,
                             std::uint64_t outstanding) {
  const std::uint64_t trips = std::min(round_trip_ns, kHedgeMaxNs) * kRoundTrips;
  const std::uint64_t bytes = std::min<std::uint64_t>(size_bytes, kHedgeMaxNs) * kNsPerByte;
  const std::uint64_t calls = std::min(outstanding, kHedgeMaxNs) * kNsPerCall;
  return std::clamp(trips + bytes + calls, kHedgeMinNs, kHedgeMaxNs);
}

}  // namespace kvsyncfs
