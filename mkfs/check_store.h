// What fsck.kvsyncfs does: looks at a store; and mends and recovers it. Thread: one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "mkfs/fsck_options.h"
#include "mkfs/make_store.h"

namespace kvsyncfs {

/// Exit status as fsck(8) defines it.
enum FsckStatus : int {
  kFsckClean = 0,
  kFsckCorrected = 1,
  kFsckLeft = 4,
  kFsckFailed = 8,
  kFsckUsage = 16,
};

struct FsckResult {
  std::uint64_t problems = 0;  ///< found
  std::uint64_t left = 0;      ///< of those, after repair
  std::uint64_t pages_checked = 0, bad_pages = 0;
  bool is_node = false;  ///< of a cluster: its catalog may lack what the log in etcd has since
  FsckStatus status() const {
    return left > 0 ? kFsckLeft : problems > 0 ? kFsckCorrected : kFsckClean;
  }
};

struct FsckObserver {
  std::function<void(std::string_view problem)> report;  ///< one line each
  std::function<void(std::string_view phase, std::uint64_t done, std::uint64_t total)> progress;
};

/// Without --repair nothing is changed: the log is replayed in memory only. A repair ends with a
/// check, so that what it says is left is what the next check would find. Of a cluster's node the
/// catalog is checked as its files have it, and the segments that it holds; of them nothing is
/// mended, since all nodes share the catalog and other holders have the bytes. Errors: those of
/// Engine::open, kBusy; kCorrupt means that the store is too damaged to be opened.
Result<FsckResult> check_store(const Seams& seams, const FsckOptions& options,
                               const FsckObserver& observer);

}  // namespace kvsyncfs
