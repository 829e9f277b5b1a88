// First bytes of transactions and commands; kvsyncfs-format(5). A tag is never given a second
// meaning.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvsyncfs {

/// A transaction has the smallest version that can say it: 1 of no session, with commands up to
/// kTagInVersion1Max; 2 all.
inline constexpr std::uint8_t kTransactionVersion = 2;
inline constexpr std::size_t kTagInVersion1Max = 16;

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
  kJoin = 17,
  kEnd = 18,
  kHoldOrphans = 19,
  kAcquireLock = 20,
  kReleaseLock = 21,
  kCancelLock = 22,
  kCreateFilled = 23,
  kOpenPlacedSegment = 24,
  kSetHolders = 25,
  kAppendExtents = 26,
  kHoldSegments = 27,
  kReleaseHold = 28,
};

// Bits of the flag byte that says which optional fields of a command follow.
inline constexpr std::uint8_t kHasMode = 1, kHasUid = 2, kHasGid = 4, kHasSize = 8, kHasAtime = 16,
                              kHasMtime = 32, kKillPrivileges = 64, kKeepCtime = 128;

struct Transaction;
/// The version that a transaction is written in.
std::uint8_t version_of(const Transaction& transaction);

}  // namespace kvsyncfs
