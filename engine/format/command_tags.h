// First bytes of transactions and commands; kvsyncfs-format(5). A tag is never given a second
// meaning.
#pragma once

#include <cstdint>

namespace kvsyncfs {

inline constexpr std::uint8_t kTransactionVersion = 1;

enum class CommandTag : std::uint8_t {
  kCreate = 1,
  kLink = 2,
  kUnlink = 3,
  kRename = 4,
  kSetAttr = 5,
  kWriteExtents = 6,
  kWriteInline = 7,
  kAllocate = 8,
  kCloneRange = 9,
  kSetXattr = 10,
  kRemoveXattr = 11,
  kReclaim = 12,
  kOpenSegment = 13,
  kSealSegment = 14,
  kDeleteSegment = 15,
  kMoveExtents = 16,
};

// Bits of the flag byte that says which optional fields of a command follow.
inline constexpr std::uint8_t kHasMode = 1, kHasUid = 2, kHasGid = 4, kHasSize = 8, kHasAtime = 16,
                              kHasMtime = 32, kKillPrivileges = 64, kKeepCtime = 128;

}  // namespace kvsyncfs
