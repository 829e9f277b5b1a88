#include "engine/catalog/extents.h"

#include <algorithm>

namespace kvsyncfs {

std::optional<Extent> cut(const Extent& extent, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t from = std::max(extent.file_offset, begin);
  std::uint64_t to = std::min(extent.file_end(), end);
  if (from >= to) return std::nullopt;
  Extent part = extent;
  part.file_offset = from;
  part.length = to - from;
  if (extent.segment != kNoSegment) part.segment_offset += from - extent.file_offset;
  return part;
}

ExtentEdit replace_range(std::span<const Extent> old, std::uint64_t offset, std::uint64_t length,
                         std::span<const Extent> fresh) {
  const std::uint64_t end = offset + length;
  ExtentEdit edit;
  std::optional<Extent> tail;
  for (const Extent& e : old) {
    if (e.file_end() <= offset || e.file_offset >= end) continue;
    edit.removed.push_back(e);
    if (auto head = cut(e, 0, offset)) edit.added.push_back(*head);
    if (e.file_end() > end) tail = cut(e, end, e.file_end());
  }
  edit.added.insert(edit.added.end(), fresh.begin(), fresh.end());
  if (tail) edit.added.push_back(*tail);
  return edit;
}

std::vector<Extent> reserve_holes(std::span<const Extent> old, std::uint64_t offset,
                                  std::uint64_t length) {
  std::vector<Extent> holes;
  std::uint64_t at = offset;
  auto reserve_until = [&](std::uint64_t end) {
    if (end > at) holes.push_back({at, end - at, kNoSegment, 0});
  };
  for (const Extent& e : old) {
    reserve_until(std::min(e.file_offset, offset + length));
    at = std::max(at, e.file_end());
  }
  reserve_until(offset + length);
  return holes;
}

}  // namespace kvsyncfs
