// Decides how many segment pages one miss should bring: the heuristic twin of the transfer-size
// model.
//
// Misses are grouped into streams by where they fall in a segment: a miss at or just behind the end
// of a stream doubles its chunk, any other starts a stream. Small files written together lie
// together, so reading them in order is a stream too. A first miss brings a few neighbours while
// the arena has frames to spare and first misses lately went on as streams: they warm an empty
// arena sooner; in a full one they would drive out what is known to be used, and where reads are
// random they cost as much again as what was asked for. Pure but for its table of streams. Thread:
// any.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "engine/base/ids.h"

namespace kvsyncfs {

class Readahead {
 public:
  static constexpr std::uint32_t kChunkPagesMax = 64;  ///< 256 KiB
  static constexpr std::uint32_t kAroundPages = 8;     ///< of a first miss, with room
  /// Pages to load for a miss of `page` that needs `needed` pages; at least `needed`.
  std::uint32_t chunk_pages(SegmentId segment, std::uint64_t page, std::uint32_t needed,
                            bool arena_has_room);

 private:
  struct Stream {
    SegmentId segment;
    std::uint64_t next_page = 0;
    std::uint32_t chunk = 0;
    std::uint64_t used = 0;
    bool went_on = false;
  };
  static constexpr std::uint64_t kGapMax = 8;  ///< pages that a stream may skip
  // Neighbours are brought while there is some trust: a stream that goes on earns it, one that is
  // forgotten without having done so costs it.
  static constexpr int kTrustMax = 8, kTrustOfStream = 4;
  std::mutex mutex_;
  int trust_ = kTrustMax;
  std::array<Stream, 16> streams_{};
  std::uint64_t tick_ = 0;
};

}  // namespace kvsyncfs
