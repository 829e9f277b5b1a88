// The locks of one kind on one inode: who holds which bytes, and who waits, first come first.
//
// flock(2) and fcntl(2) locks do not see each other, so each kind has a table of its own. A flock
// covers all bytes and belongs to an open file; a range belongs to a process. Field table:
// kvsyncfs-format(5). Thread: values, any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

enum class LockKind : std::uint8_t { kFlock = 1, kPosix = 2 };
enum class LockType : std::uint8_t { kShared = 1, kExclusive = 2 };

inline constexpr std::uint64_t kLockEndMax = 0x7fffffffffffffff;  ///< as l_len 0 of fcntl(2)

/// `number` is the node's own name for the process or open file.
struct LockOwner {
  SessionId session;
  std::uint64_t number = 0;
  auto operator<=>(const LockOwner&) const = default;
};

struct FileLock {
  LockOwner owner;
  LockType type = LockType::kShared;
  std::uint64_t start = 0, end = kLockEndMax;  ///< bytes, both ends included
  std::uint32_t pid = 0;                       ///< on its node; for F_GETLK
  bool operator==(const FileLock&) const = default;
};

struct LockWait {
  std::uint64_t id = 0;  ///< place of its command in the log
  FileLock wanted;
  bool operator==(const LockWait&) const = default;
};

struct LockTable {
  std::vector<FileLock> held;   ///< by owner and start; the ranges of an owner do not overlap
  std::vector<LockWait> waits;  ///< by id
  bool empty() const { return held.empty() && waits.empty(); }
  std::size_t size() const { return held.size() + waits.size(); }
  bool operator==(const LockTable&) const = default;
};

std::string encode(const LockTable& table);
/// Errors: kCorrupt.
Result<LockTable> decode_lock_table(std::string_view bytes);

}  // namespace kvsyncfs
