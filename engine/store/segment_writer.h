// One stream's open segment: fills it batch by batch, seals it and opens the next.
//
// Appends that come while one is being written go together in the next batch: in a cluster each
// batch costs a sync here and one at every other holder. Thread: any; one mutex, held over the
// write and over the hooks, and before it the queue's, a leaf. Nothing that a read or a sync needs
// is locked meanwhile.
#pragma once

#include <condition_variable>
#include <deque>
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
  /// It has no open segment any more; returns the one that it had, or kNoSegment.
  SegmentId let_go();

 private:
  struct Waiting {  ///< an append; on its caller's stack
    std::span<const Bytes> runs;
    std::vector<Placed> placed;
    Status status;
    bool done = false;
  };
  std::vector<Waiting*> take_group();  ///< from the queue; queue_mutex_ is held
  void append_group(std::span<Waiting* const> group);
  Result<std::vector<Placed>> append_runs(std::span<const Bytes> runs);  ///< mutex_ is held
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

  std::mutex queue_mutex_;
  std::condition_variable written_;  ///< with queue_mutex_
  std::deque<Waiting*> queue_;
  bool is_led_ = false;  ///< one of those who wait writes

  std::mutex mutex_;
  BatchBuilder builder_;
  SegmentPtr segment_;           // null before the first append
  std::uint32_t next_page_ = 0;  // in segment_
  // A seal of segment_ was tried and may have happened: nothing is appended to it any more.
  bool ending_ = false;
};

}  // namespace kvsyncfs
