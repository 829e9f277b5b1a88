// The files of a log that is open for writing: the active one, closed ones that still hold needed
// entries, and spares. Makes them, fills them, recycles them.
//
// Invariants:
// 1. a file's name is its generation; the active file's is above every closed one's, a spare's
//    above both;
// 2. a spare's name is durable before a batch goes into it, so that no batch can be lost with a
//    name;
// 3. a file has all its blocks, written once, before it gets batches, so that a sync need not wait
//    for the file system's journal (except a spare that had to be made in a hurry);
// 4. an opened log never goes on in a file that was written before: what lies behind a tear stays
//    out of reach.
// 5. a note's name says which file the newest batches are in, before there are any, and says none
//    before that file goes: so a file that somebody takes away is missed.
// Thread: one at a time (the log's leader), except held_bytes().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "engine/env/disk.h"
#include "engine/log/local_log.h"
#include "engine/log/log_reader.h"

namespace kvsyncfs {

class LogFiles {
 public:
  LogFiles(Disk& disk, const LocalLogOptions& options);

  /// mkfs: the first file. Errors: kExists, kNoSpace, kIo.
  Status format();

  /// Takes over what the scan found, unless it ends before `applied` and so is of no use. What
  /// crash or kill left unsynced is synced. Errors: kIo, kNotFound.
  Status adopt(const LogScan& scan, Position applied);

  /// Makes sure that a batch of up to `size` bytes can be placed. Errors: kNoSpace, kIo.
  Status ensure_room(std::uint64_t size);

  /// Where the next batch of `size` bytes goes; may end the active file (synced then) and start the
  /// next. Requires ensure_room(size). Errors: kIo.
  struct Place {
    std::uint64_t generation = 0, file_offset = 0;
    bool started_file = false;  ///< everything before is on stable storage
  };
  Result<Place> place(std::uint64_t size);

  /// Writes at the place; `bytes` are whole units. Errors: kIo, kNoSpace.
  Status write(Bytes bytes, Position last);

  /// Everything written is on stable storage. Errors: kIo.
  Status sync();

  /// Works ahead on the next file, in proportion to what was written. A failure shows in
  /// ensure_room.
  void prepare();

  /// Entries up to `position` are not needed: recycles files. Errors: kIo.
  Status trim(Position position);

  /// Bytes of log files that are taken: closed ones whole, the active one as far as it is written
  /// and not trimmed. Thread: any.
  std::uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  struct ClosedFile {
    std::uint64_t generation = 0, size = 0;
    Position last;
  };
  struct WrittenBatch {
    Position last;
    std::uint64_t end = 0;  ///< byte in the active file
  };
  struct ActiveFile {
    std::unique_ptr<File> file;
    std::uint64_t generation = 0;
    std::uint64_t used_bytes = 0, trimmed_bytes = 0;
    bool unsynced = false;
    std::deque<WrittenBatch> untrimmed;
    Position last;
  };
  struct NextFile {  ///< in preparation, under a name of its own
    std::unique_ptr<File> file;
    std::uint64_t written_bytes = 0;
  };

  std::string path(std::uint64_t generation) const;
  std::string next_path() const;
  std::uint64_t room() const;
  std::size_t spares_max() const;
  Status rotate();
  Status start_next_file();
  Status fill_next_file(std::uint64_t up_to);
  Status finish_next_file();
  Status release(const ClosedFile& file);
  Status note_newest(std::uint64_t generation);
  Status sync_closed();
  void update_held();

  Disk& disk_;
  const LocalLogOptions& options_;
  std::optional<ActiveFile> active_;
  std::deque<ClosedFile> closed_;     ///< oldest first
  std::deque<std::uint64_t> spares_;  ///< generations, lowest first
  std::optional<NextFile> next_;
  bool prepare_failed_ = false;
  std::uint64_t next_generation_ = 1;
  std::optional<std::uint64_t> newest_;  ///< as the note says; nothing: there was no room for one
  AlignedBuffer zeros_;
  std::atomic<std::uint64_t> held_bytes_{0};
};

}  // namespace kvsyncfs
