// Who held a lock when, and whether that can be: an exclusive lock is held alone. Counted are those
// whose unlock went well, since a session that ended has lost its locks without its word. Pure.
// Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvsyncfs {

struct LockHold {
  unsigned node = 0;
  std::uint64_t owner = 0;
  bool is_exclusive = false;
  std::uint64_t first = 0, last = 0;       ///< bytes
  std::uint64_t begin_ns = 0, end_ns = 0;  ///< granted; asked to be given back
};

/// Empty, or what cannot be.
std::string check_locks(const std::vector<LockHold>& holds);

}  // namespace kvsyncfs
