// The totally ordered log that every change of the catalog goes through.
//
// Makers: LocalLog (one node, files on a Disk) and EtcdLog (a cluster, etcd/etcd_log.h).
// Invariants: 1. positions are dense and start at 1; 2. the applier is called once per entry, in
// position order, never at the same time twice; 3. after a crash the log holds a prefix of what was
// appended, at least up to the last position that sync() confirmed. In a cluster entries of all
// nodes come to the applier of each, so that positions of own entries have gaps between them; an
// entry whose append failed with kTimeout or kFenced may come as well.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

class SharedLog {
 public:
  /// Runs at each entry in order; `entry` is borrowed for the call. Must not call into the log.
  using Applier = std::function<void(Position, std::string_view entry)>;

  virtual ~SharedLog() = default;

  /// Hands every entry that the log still holds to `applier`, then live ones as they come.
  /// `applied` is the position that the catalog has already; entries up to it come too (the engine
  /// rebuilds its write buffer from them). Call once, before append. Errors: kCorrupt (an entry in
  /// the middle is damaged, or the log starts later than applied + 1: a gap), kIo.
  virtual Status start(Position applied, Applier applier) = 0;

  /// Orders `entry`; when it returns, the entry has been applied here. Not yet durable (LocalLog).
  /// Thread: any. Errors: kNoSpace, kIo, kShutdown, kTooBig (larger than a batch), kTimeout (in a
  /// cluster it may be in the log, now or later; on a lone node it is not); in a cluster also
  /// kFenced (the session has ended), kCorrupt, kStale, kAccess.
  virtual Result<Position> append(std::string_view entry) = 0;

  /// Everything up to `position` is on stable storage when it returns; concurrent callers share one
  /// disk write (group commit). Thread: any. Errors: kIo, kShutdown, kNoSpace (nothing is lost: it
  /// can be asked for again), kTimeout (durable or not).
  virtual Status sync(Position position) = 0;

  /// Runs `while_frozen` with no append in flight and everything so far durable; then appends go
  /// on. It gets the last position. Must be short: it stops the world. Errors: those of sync.
  virtual Status freeze(const std::function<void(Position)>& while_frozen) = 0;

  virtual Position last() const = 0;     ///< last appended and applied here
  virtual Position durable() const = 0;  ///< last known to be on stable storage

  /// Entries up to `position` are not needed any more. Errors: kIo.
  virtual Status trim(Position position) = 0;

  /// Bytes of entries that trim has not released: the engine checkpoints before it nears
  /// `capacity`.
  virtual std::uint64_t held_bytes() const = 0;
  virtual std::uint64_t capacity_bytes() const = 0;
};

}  // namespace kvsyncfs
