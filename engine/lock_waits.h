// Requests of this node for locks of the cluster, from the caller's wish to its one answer.
//
// The log decides: its applier binds a wait to its request before any later entry can grant it, so
// no grant is lost, and a wait ends only by an entry that grants or cancels it (or with the
// session). A request whose command failed without a verdict is abandoned: its caller is told, and
// what the log may still give to it is owed back. Thread: any; one leaf mutex, under which nothing
// is called.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "engine/catalog/catalog.h"
#include "engine/engine.h"

namespace kvsyncfs {

class LockWaits {
 public:
  /// An answer that is due.
  struct Ended {
    LockDone done;
    InodeId inode;
    Status status;
    bool interrupted = false;
  };

  /// Returns the request's number, never 0. `done` is for whoever takes the answer.
  std::uint64_t begin(LockDone done);
  /// The command is about to go to the log; false: it shall not, for it was cancelled before.
  bool send(std::uint64_t request, const AcquireLockCommand& command);
  /// It goes there under that number of the session's. Said before it is queued, perhaps again.
  void numbered(std::uint64_t request, std::uint64_t number);
  /// The command came back from the log, or did not.
  void returned(std::uint64_t request, const Status& status);
  /// A signal came. Without effect on a request that is answered.
  void cancel(std::uint64_t request);
  /// Some AcquireLock of the owner has no verdict yet.
  bool is_on_its_way(InodeId inode, LockKind kind, std::uint64_t owner) const;
  /// The session is over: all get this answer, nothing is owed.
  void fail_all(const Error& error);
  /// Another one may follow: those that were sent in it get kIo, nothing is owed.
  void session_ended();

  /// What the owner held there is still to be given back: no new lock of it may be taken meanwhile.
  bool owes(InodeId inode, LockKind kind, std::uint64_t owner) const;

  // What the log's applier tells of, in the log's order.
  /// An AcquireLock of this session's request of that number.
  void applied(std::uint64_t number, const CommandResult& result);
  /// A request of this session: those of lower numbers that were not applied never will be.
  void passed(std::uint64_t number);
  void granted(std::uint64_t wait);
  void cancelled(std::uint64_t wait);

  /// An answer to give, if there is one within `time`.
  std::optional<Ended> take_ended(std::chrono::nanoseconds time);
  /// A command to commit, if there is one within `time`, until paid(). One that failed is owed
  /// again before that. Thread: one.
  std::optional<Command> take_owed(std::chrono::nanoseconds time);
  void paid();
  void owe(Command command);

 private:
  enum class State { kBegun, kSent, kDecided, kWaiting };
  struct Request {
    LockDone done;  ///< empty: abandoned
    State state = State::kBegun;
    bool is_cancelled = false;
    AcquireLockCommand command;
    std::uint64_t number = 0;  ///< of the session's request
    Status verdict;            ///< if it is decided
    std::uint64_t wait = 0;    ///< if it waits
  };
  using Requests = std::map<std::uint64_t, Request>;

  Requests::iterator waiting(std::uint64_t wait);
  void end(Requests::iterator request, Status status, bool interrupted);
  void give_back(const AcquireLockCommand& command);
  void push_owed(Command command);

  mutable std::mutex mutex_;
  std::condition_variable ended_changed_, owed_changed_;
  std::uint64_t last_ = 0;
  Requests requests_;
  std::deque<Ended> ended_;
  std::deque<Command> owed_;
  std::optional<Command> paying_;
};

}  // namespace kvsyncfs
