// LocalLog: the shared log of a lone node, in preallocated files of the store's log/ folder.
//
// An append is ordered and applied at once and sits in memory; sync() writes one *batch* of all
// entries that queued (padded to pages, CRC32C, positions) by one direct write and one fdatasync,
// by a leader for all waiters. A batch is written while the next gathers. Batches that outgrow
// `batch_size_max` are written (not synced) by their appender, so memory is bounded. Before each
// write of a batch `before_write` runs, so that bytes that its entries point at are on disk first
// (P4). Recovery: batches are read in order while their header, position and CRC are right. An
// invalid batch with no valid later one is a torn tail and is dropped with a warning; one with a
// valid later one is damage in the middle: kCorrupt, nothing is changed. Files have generation
// numbers, so that a recycled file's old batches cannot be taken for new ones. Files:
// kvsyncfs-format(5), "Log".
//
// A write, sync or `before_write` that failed ends the log for good: every later append and sync
// gets kIo. A full disk that only refuses another log file does not; entries wait in memory, and
// kNoSpace says so. Entries that were not synced are lost when the object is destroyed.
//
// Locks: append_mutex_ before sync_mutex_. The applier runs under append_mutex_; no lock is held
// over a write or a sync, save in freeze().
#pragma once

#include <memory>
#include <string>

#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/log/shared_log.h"

namespace kvsyncfs {

struct LocalLogOptions {
  std::string directory;                      ///< the store's log/
  std::uint64_t volume_tag = 0;               ///< low 64 bits of the volume's UUID; in every header
  std::uint64_t file_size_bytes = 32u << 20;  ///< of one log file, a multiple of 4096
  std::uint32_t file_count_max = 8;           ///< capacity = file size * count
  std::uint64_t batch_size_max = 4u << 20;
  bool read_only = false;  ///< start() replays; append fails with kReadOnly
  std::function<Status()> before_write = [] { return Status{}; };
  std::function<void(std::string_view)> warn = [](std::string_view) {};  ///< one line
  /// With a clock no call waits longer than that for what another one writes: kTimeout. Of an
  /// append nothing is in the log then; what a sync was to make durable is ordered, and durable or
  /// not.
  Clock* clock = nullptr;  ///< borrowed
  std::uint64_t timeout_ns = 15'000'000'000;
};

/// mkfs: makes the folder and the first log file. Errors: kExists, kNoSpace, kIo.
Status format_local_log(Disk& disk, const LocalLogOptions& options);

/// Opens the log. Errors: kNotFound, kCorrupt, kNewerFormat, kIo. The Disk outlives the log.
Result<std::unique_ptr<SharedLog>> open_local_log(Disk& disk, LocalLogOptions options);

}  // namespace kvsyncfs
