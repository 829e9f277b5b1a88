// Segments that other nodes append to and that this node holds a copy of: the same bytes at the
// same places, batch by batch. Thread: any; one writer a segment at a time.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/store/segment_index.h"
#include "engine/store/space.h"
#include "engine/store/syncer.h"

namespace kvsyncfs {

class ReplicaWriter {
 public:
  /// All borrowed.
  ReplicaWriter(Disk& disk, const StoreOptions& options, SegmentIndex& index, Space& space,
                Syncer& syncer, StoreCounts& counts);

  /// As SegmentStore::write_replica.
  Status write(SegmentId id, std::uint64_t page, Bytes batch);
  /// As SegmentStore::mend_batch.
  Status mend(SegmentId id, std::uint64_t page, Bytes batch);
  /// As SegmentStore::make_anew.
  Status make_anew(SegmentId id, std::uint64_t length);
  /// As SegmentStore::seal_replica.
  Status seal(SegmentId id, std::uint64_t length);
  /// The segment is being removed.
  void forget(SegmentId id);

 private:
  struct Replica {
    std::mutex mutex;  // over a write
    SegmentPtr segment;
    std::uint64_t next_page = 0;
  };
  using ReplicaPtr = std::shared_ptr<Replica>;

  /// Of a segment whose file is being written here; made where there is none. Errors: kStale (its
  /// file is of a former life), kNoSpace, kIo.
  Result<ReplicaPtr> find_or_make(SegmentId id);
  Status append(Replica& replica, std::uint64_t page, Bytes batch,
                std::span<const std::uint32_t> checksums);

  Disk& disk_;
  const StoreOptions& options_;
  SegmentIndex& index_;
  Space& space_;
  Syncer& syncer_;
  StoreCounts& counts_;

  std::mutex mutex_;                                    // held where a file is made
  std::unordered_map<SegmentId, ReplicaPtr> replicas_;  // not sealed
};

}  // namespace kvsyncfs
