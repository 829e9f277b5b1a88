// Compares the copies that nodes have of a batch with its checksums, and writes a damaged one anew
// from a good one. Segments never change, so a copy is good or bad, never another one.
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/env/clock.h"
#include "engine/net/transport.h"
#include "engine/store/segment_store.h"
#include "engine/sync/own_copies.h"

namespace kvsyncfs {

/// What became of one copy.
struct CheckedCopy {
  NodeId node;
  Status status;           ///< ok: good; kCorrupt, kNotFound, kIo: bad; else it was not asked
  bool is_mended = false;  ///< it was bad
  bool is_bad() const;
};
struct CheckedBatch {
  std::optional<PageRange> batch;  ///< as a good copy has it, its checksum page first
  std::vector<CheckedCopy> copies;
};

class CopyKeeper {
 public:
  /// All borrowed. `transport`: null on a lone node. `timeout_ns`: of one call to a peer.
  CopyKeeper(Transport* transport, Clock& clock, SegmentStore& store, NodeId self,
             std::uint64_t timeout_ns, HeldLength held_length)
      : transport_(transport),
        clock_(clock),
        store_(store),
        self_(self),
        timeout_ns_(timeout_ns),
        held_length_(std::move(held_length)) {}

  /// Reads the batch that has the page, each of `holders` its own copy.
  CheckedBatch check(SegmentId segment, std::uint64_t page, std::span<const NodeId> holders);
  /// Asks those of `holders` that were not asked yet until one has a good copy, and writes the bad
  /// ones anew from it, also those whose file is gone. What cannot be mended stays as it is told.
  void mend(SegmentId segment, std::uint64_t page, std::span<const NodeId> holders,
            CheckedBatch& checked);
  /// Where the first batch begins, at the page or behind it, that any of `holders` knows of.
  std::optional<std::uint64_t> next_batch(SegmentId segment, std::uint64_t page,
                                          std::span<const NodeId> holders);
  /// The batch with its checksum page at `page`, from the first of `holders` beside this node that
  /// says its copy is good. Errors: what the last one said, kNotFound (there is none).
  Result<AlignedBuffer> read_from_others(SegmentId segment, std::uint64_t page,
                                         std::span<const NodeId> holders);

 private:
  Result<std::uint64_t> next_batch_of(NodeId holder, SegmentId segment, std::uint64_t page);
  Result<PageRange> check_copy(NodeId holder, SegmentId segment, std::uint64_t page);
  Result<AlignedBuffer> read_copy(NodeId holder, SegmentId segment, PageRange batch);
  Status write_copy(NodeId holder, SegmentId segment, std::uint64_t page,
                    const std::shared_ptr<AlignedBuffer>& batch);
  Call call_to(std::uint16_t kind, SegmentId segment, std::uint64_t page) const;

  Transport* const transport_;
  Clock& clock_;
  SegmentStore& store_;
  const NodeId self_;
  const std::uint64_t timeout_ns_;
  const HeldLength held_length_;
};

}  // namespace kvsyncfs
