// What the parts of the store count, under StoreCounters' names. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvsyncfs {

struct StoreCounts {
  std::atomic<std::uint64_t> appended_bytes = 0, moved_bytes = 0, written_bytes = 0,
                             copied_bytes = 0, corrupt_pages = 0;
};

}  // namespace kvsyncfs
