// Strong ids: numbers that must not be mixed up. Thread: values, any.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace kvsyncfs {

template <typename Tag>
struct StrongId {
  std::uint64_t value = 0;
  auto operator<=>(const StrongId&) const = default;
};

using InodeId = StrongId<struct InodeTag>;      ///< never repeats in a volume; 1 is the root
using SegmentId = StrongId<struct SegmentTag>;  ///< never repeats; 0 = reserved, reads as zeros
using Position = StrongId<struct PositionTag>;  ///< place in the log, dense, from 1; 0 = before all
using NodeId = StrongId<struct NodeTag>;        ///< a member of the volume; 0 = none
using Incarnation = StrongId<struct IncarnationTag>;  ///< one life of a node's daemon; grows
using SessionId = StrongId<struct SessionTag>;  ///< such a life in the log; never repeats; 0 = none

inline constexpr InodeId kRootInode{1};
inline constexpr SegmentId kNoSegment{0};

inline constexpr std::size_t kPageSize = 4096;            ///< bytes
inline constexpr std::size_t kNameSizeMax = 255;          ///< bytes of one name
inline constexpr std::size_t kSymlinkSizeMax = 4095;      ///< bytes of a symlink target
inline constexpr std::size_t kXattrValueSizeMax = 65536;  ///< bytes, as Linux limits it
inline constexpr std::size_t kXattrListSizeMax = 65536;   ///< bytes, as Linux limits it
inline constexpr std::uint64_t kFileSizeMax = (std::uint64_t{1} << 62) - 1;  ///< bytes
inline constexpr std::uint32_t kLinkCountMax = 0x7fffffff;

/// Ids given out by apply are made from the place of the command in the log, so they need no
/// counter and never repeat: position * 1024 + index of the command in its transaction.
inline constexpr std::uint32_t kCommandsPerTransactionMax = 1024;
constexpr std::uint64_t id_at(Position position, std::uint32_t command_index) {
  return position.value * kCommandsPerTransactionMax + command_index;
}
inline constexpr std::uint64_t kCookieMin = 3;  ///< of an entry: "." and ".." have those below
/// The position of the command that an id was made from.
constexpr Position position_of(std::uint64_t id) { return {id / kCommandsPerTransactionMax}; }

constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace kvsyncfs

template <typename Tag>
struct std::hash<kvsyncfs::StrongId<Tag>> {
  std::size_t operator()(kvsyncfs::StrongId<Tag> id) const noexcept {
    std::uint64_t x = id.value * 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(x ^ (x >> 32));
  }
};
