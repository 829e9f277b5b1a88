// Pulls pages of segments from the nodes that hold them, and checks each before it hands it on.
//
// One holder is asked; where it fails, or does not answer for a moment (policy/hedge.h), the next
// one is asked as well, and the first good answer wins. So a holder that is slow, frozen or cut off
// costs a read that moment, until the transport takes it for down and it is asked last.
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
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
  struct Candidate {
    NodeId node;
    std::uint64_t round_trip_ns = 0, outstanding = 0;
  };
  struct Wanted {
    SegmentId segment;
    std::uint64_t page = 0;
    std::size_t count = 0;  ///< pages
    std::uint64_t deadline_ns = 0;
  };
  struct Race;
  std::vector<Candidate> in_order(std::span<const NodeId> holders) const;
  void ask(const std::shared_ptr<Race>& race, const Wanted& wanted, NodeId holder);
  Result<std::size_t> good_pages(const Wanted& wanted, const Reply& reply, Bytes pages) const;

  Transport& transport_;
  Clock& clock_;
  const std::uint64_t volume_tag_, timeout_ns_;
};

}  // namespace kvsyncfs
