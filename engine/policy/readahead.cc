#include "engine/policy/readahead.h"

#include <algorithm>

namespace kvsyncfs {

std::uint32_t Readahead::chunk_pages(SegmentId segment, std::uint64_t page, std::uint32_t needed,
                                     bool arena_has_room) {
  std::lock_guard lock(mutex_);
  Stream* oldest = &streams_[0];
  for (Stream& s : streams_) {
    if (s.segment == segment && page >= s.next_page && page <= s.next_page + kGapMax) {
      s.chunk = std::clamp(s.chunk * 2, needed, std::max(needed, kChunkPagesMax));
      s.next_page = page + s.chunk;
      s.used = ++tick_;
      return s.chunk;
    }
    if (s.used < oldest->used) oldest = &s;
  }
  const std::uint32_t chunk = arena_has_room ? std::max(needed, kAroundPages) : needed;
  *oldest = Stream{segment, page + chunk, chunk, ++tick_};
  return chunk;
}

}  // namespace kvsyncfs
