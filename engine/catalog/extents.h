// What replacing a range of a file does to its extent list. Pure. Thread: any.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/format/records.h"

namespace kvsyncfs {

/// The part of `extent` inside [begin, end); nothing when they do not touch.
std::optional<Extent> cut(const Extent& extent, std::uint64_t begin, std::uint64_t end);

struct ExtentEdit {
  std::vector<Extent> removed;  ///< records that go, as they were
  std::vector<Extent> added;    ///< records that come, in file order, disjoint
};

/// [offset, offset + length) becomes `fresh` (in file order, inside the range; what they leave is a
/// hole). `old` are the extents that touch the range, in file order; what sticks out of the range
/// is kept.
ExtentEdit replace_range(std::span<const Extent> old, std::uint64_t offset, std::uint64_t length,
                         std::span<const Extent> fresh);

/// Reserved extents for what [offset, offset + length) has no extent for.
std::vector<Extent> reserve_holes(std::span<const Extent> old, std::uint64_t offset,
                                  std::uint64_t length);

}  // namespace kvsyncfs
