// Makes appended bytes durable: one leader syncs for all who wait.
//
// A failed sync is final, since the kernel may have dropped the bytes and forgotten about it. A
// call waits for the disk and nobody else: for a run that is under way, and for the next one.
// Thread: any; no lock is held during I/O, and none of the store's is taken.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/segment.h"

namespace kvsyncfs {

class Syncer {
 public:
  Syncer(Disk& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

  /// The segment has bytes that the next sync() must bring to the disk.
  void wrote(const SegmentPtr& segment);
  /// So has the directory.
  void changed_directory();
  /// Segments that wait for a sync; each stays open until then.
  std::size_t pending_count() const;
  /// All that was told before the call is durable. Errors: kIo.
  Status sync();

 private:
  struct Work {
    std::vector<SegmentPtr> segments;
    bool directory = false;
  };
  Status run(const Work& work);

  Disk& disk_;
  const std::string directory_;
  mutable std::mutex mutex_;
  std::condition_variable done_;
  Work pending_;
  std::uint64_t told_ = 0, synced_ = 0;  // counts of calls of wrote and changed_directory
  bool running_ = false;
  std::optional<Error> failure_;
};

}  // namespace kvsyncfs
