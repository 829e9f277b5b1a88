// Sends the batches of this node's segments to their other holders. Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/env/clock.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

class Shipper {
 public:
  Shipper(Transport& transport, Clock& clock, std::uint64_t timeout_ns)
      : transport_(transport), clock_(clock), timeout_ns_(timeout_ns) {}

  /// Begins to send a batch to each of `holders`; what is returned waits until all have it on
  /// stable storage. Borrows nothing. `lost` is told of a holder that has not, before that returns.
  /// Errors of the wait: kUnreachable, naming the node and why.
  std::function<Status()> ship(SegmentId segment, std::uint64_t page, std::span<const Bytes> pieces,
                               const std::vector<NodeId>& holders,
                               std::function<void(NodeId, const Error&)> lost);

 private:
  Transport& transport_;
  Clock& clock_;
  const std::uint64_t timeout_ns_;
};

}  // namespace kvsyncfs
