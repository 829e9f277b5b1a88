// Pulls pages of segments from the nodes that hold them, and checks each before it hands it on.
// Thread: any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/env/clock.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

class PagePuller {
 public:
  /// `timeout_ns` bounds one call of this class, over all holders.
  PagePuller(Transport& transport, Clock& clock, std::uint64_t volume_tag,
             std::uint64_t timeout_ns);

  /// Whole data pages from `page` on into `out`, as many as the holder's batch has there, at least
  /// one; returns the count. Holders are asked in turn, those that are connected first, the one
  /// with the least under way before the others. Errors: kNotFound (no holder has the segment),
  /// kCorrupt (no holder has good pages), kUnreachable (none can be reached), kTimeout.
  Result<std::size_t> pull(SegmentId segment, std::uint64_t page, MutableBytes out,
                           std::span<const NodeId> holders);

 private:
  std::vector<NodeId> in_order(std::span<const NodeId> holders) const;
  Result<std::size_t> pull_from(NodeId holder, SegmentId segment, std::uint64_t page,
                                MutableBytes out, std::uint64_t deadline_ns);

  Transport& transport_;
  Clock& clock_;
  const std::uint64_t volume_tag_, timeout_ns_;
};

}  // namespace kvsyncfs
