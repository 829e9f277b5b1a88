#include "engine/policy/readahead.h"

#include <algorithm>
#include <utility>

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
      if (!std::exchange(s.went_on, true)) trust_ = std::min(trust_ + kTrustOfStream, kTrustMax);
      return s.chunk;
    }
    if (s.used < oldest->used) oldest = &s;
  }
  const bool is_forgotten = oldest->used > 0 && !oldest->went_on;
  if (is_forgotten) trust_ = std::max(trust_ - 1, 0);
  const bool with_neighbours = arena_has_room && trust_ > 0;
  const std::uint32_t chunk = with_neighbours ? std::max(needed, kAroundPages) : needed;
  *oldest = Stream{segment, page + chunk, chunk, ++tick_, false};
  return chunk;
}

}  // namespace kvsyncfs
