// How far the scrub that runs by itself has come, so that the next life goes on from there. File
// STORE/scrub-mark, kvsyncfs-format(5). Pure. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

inline constexpr std::string_view kScrubMarkFile = "scrub-mark";
inline constexpr std::string_view kNextScrubMarkFile = "scrub-mark.new";  ///< until it is whole
inline constexpr std::size_t kScrubMarkSize = 56;                         ///< bytes

struct ScrubMark {
  std::uint64_t volume_tag = 0;
  SegmentId segment;               ///< where the pass goes on; 0: it is over
  std::uint64_t page = 0;          ///< of that segment
  std::int64_t begun_seconds = 0;  ///< since 1970: the pass
  std::uint32_t bad_now = 0;       ///< places that nothing could mend: found by this pass so far
  std::uint32_t bad_before = 0;    ///< found by the last one that came to its end
  bool operator==(const ScrubMark&) const = default;
};

std::string encode(const ScrubMark& mark);
/// Takes the whole of `bytes`. Errors: kCorrupt (magic, size, checksum), kNewerFormat.
Result<ScrubMark> decode_scrub_mark(std::string_view bytes);

}  // namespace kvsyncfs
