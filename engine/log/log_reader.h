// Reads the files of a log as they are on disk and tells where the log ends. Changes nothing.
//
// The rule of the end (P4): batches are read in order while they are valid and the next in line.
// What comes after the first that is not is a torn tail, unless a valid batch further on was
// written when that position was already on stable storage (`durable` in its header): then it is
// damage, kCorrupt. Valid batches behind a tear are only those that were written, but not synced,
// before the crash; they are dropped with it. A file that is not there leaves no batch to tell of
// it, so a note names the newest one: without it the log is damaged. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/env/disk.h"
#include "engine/log/local_log.h"

namespace kvsyncfs {

/// Path of the log file of a generation.
std::string log_file_path(const std::string& directory, std::uint64_t generation);
/// Path of the empty file whose name says which log file the newest entries are in; generation 0:
/// no entry is needed of any.
std::string newest_note_path(const std::string& directory, std::uint64_t generation);

struct ScannedFile {
  std::uint64_t generation = 0;
  std::uint64_t size = 0;        ///< bytes
  std::uint64_t used_bytes = 0;  ///< where its part of the log ends; 0: it holds none
  Position last;                 ///< last entry in it; 0: none
};

struct LogReport {               ///< what opening found
  Position first, last;          ///< entries held
  std::uint64_t torn_bytes = 0;  ///< dropped from the tail
};

struct LogScan {
  std::vector<ScannedFile> files;       ///< oldest generation first
  std::optional<std::uint64_t> newest;  ///< what the note says; nothing: there is none
  LogReport report;
};

using EntryVisitor = std::function<void(Position, std::string_view)>;

/// `visit` (may be empty) sees every entry, before the verdict on what follows is known.
/// Errors: kNotFound, kCorrupt, kNewerFormat, kIo, kNoMemory.
Result<LogScan> scan_log(Disk& disk, const LocalLogOptions& options, const EntryVisitor& visit);

}  // namespace kvsyncfs
