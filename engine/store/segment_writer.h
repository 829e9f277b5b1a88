// One stream's open segment: fills it batch by batch, seals it and opens the next.
// Thread: any; one mutex, held over the write and over the hooks. Nothing that a read or a sync
// needs is locked meanwhile.
#pragma once

#include <mutex>
#include <vector>

#include "engine/store/batch_builder.h"
#include "engine/store/segment_index.h"
#include "engine/store/space.h"
#include "engine/store/syncer.h"

namespace kvsyncfs {

class SegmentWriter {
 public:
  /// All borrowed.
  SegmentWriter(Stream stream, Disk& disk, const StoreOptions& options, SegmentIndex& index,
                Space& space, Syncer& syncer, StoreCounts& counts);

  /// Errors: kNoSpace, kIo, those of the hooks.
  Result<std::vector<Placed>> append(std::span<const Bytes> runs);
  /// Seals the segment if it is this stream's open one. Errors: those of the hooks.
  Status finish(SegmentId id);

 private:
  std::uint32_t pages_left() const { return segment_ ? segment_pages_ - next_page_ : 0; }
  Status prepare();  // an open segment that takes a batch
  Status seal();
  Status open_next();
  Status write_batch();

  const Stream stream_;
  Disk& disk_;
  const StoreOptions& options_;
  SegmentIndex& index_;
  Space& space_;
  Syncer& syncer_;
  StoreCounts& counts_;
  const std::uint32_t segment_pages_;

  std::mutex mutex_;
  BatchBuilder builder_;
  SegmentPtr segment_;           // null before the first append
  std::uint32_t next_page_ = 0;  // in segment_
  // A seal of segment_ was tried and may have happened: nothing is appended to it any more.
  bool ending_ = false;
};

}  // namespace kvsyncfs
