// Where a page that is not in memory comes from: the seam through which a miss leaves the tier. On
// a lone node the maker reads local segments; in a cluster a maker pulls from peers. The tier knows
// neither.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

class MissSource {
 public:
  virtual ~MissSource() = default;
  /// Reads and verifies segment bytes [offset, offset + out.size()), inside one batch; whole
  /// aligned pages into aligned memory are not copied. Thread: any. Errors: kCorrupt, kIo,
  /// kNotFound.
  virtual Status load(SegmentId segment, std::uint64_t offset, MutableBytes out) = 0;
  /// Whole pages from `page` on into `out`, as many as are there, at least one; returns the count.
  /// Checksum pages may be among them, verified or not, but not first. Thread: any. Errors: those
  /// of load, kUnreachable, kTimeout.
  virtual Result<std::size_t> load_some(SegmentId segment, std::uint64_t page,
                                        MutableBytes out) = 0;
};

}  // namespace kvsyncfs
