// Decides how long a pull waits for a holder before it asks another one as well: the heuristic twin
// of a model of their delays. Pure. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvsyncfs {

inline constexpr std::uint64_t kHedgeMinNs = 20'000'000;   ///< a disk that syncs is no fault
inline constexpr std::uint64_t kHedgeMaxNs = 150'000'000;  ///< of which a reader notices little

/// `round_trip_ns`: of the peer's last heartbeat, 0 if there was none; `size_bytes`: asked for;
/// `outstanding`: calls that it has not answered yet. Nanoseconds, within the bounds above.
std::uint64_t hedge_delay_ns(std::uint64_t round_trip_ns, std::size_t size_bytes,
                             std::uint64_t outstanding);

}  // namespace kvsyncfs
