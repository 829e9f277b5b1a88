// Answers a request with EINTR before its handler has come back, where its caller got a signal:
// the kernel says so (INTERRUPT), and lets nobody end who waits for an answer. Handlers know
// nothing of it: what they change is asked of Caller, and their late reply fails as if the kernel
// had not waited.
//
// Who is about to be killed is answered at once, on a lone node only until its call changes
// something: there the kernel keeps names and sizes, and would keep those from before. A signal
// with a handler ends only what POSIX says (read, write, fsync, close), a write only if it has
// changed nothing, and only after a second: programs that are sent signals all the time do not
// expect EINTR of files that work.
//
// In a cluster a close waits for other nodes, and the close of a killed process comes without an
// INTERRUPT: those that last are looked at.
//
// File locks are not meant: their waits are the engine's (ops/locks.cc). Thread: any; a request is
// replied to by the thread that read it, unless it is a lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

class RunningRequests {
 public:
  /// Whether this thread of a process is about to end by a signal.
  using IsKilled = std::function<bool(std::uint32_t thread_id)>;

  RunningRequests(bool clustered, IsKilled is_killed);
  ~RunningRequests();  ///< as stop()
  RunningRequests(const RunningRequests&) = delete;
  RunningRequests& operator=(const RunningRequests&) = delete;

  /// Errors: kNoMemory.
  Status start();
  /// Nobody is answered any more.
  void stop();

  /// This thread has read the request from `fd` and will run its handler, and is the Caller of what
  /// that one calls.
  void began(int fd, const void* request, std::size_t size);
  /// A reply of this thread is to be sent. False: the request has been answered.
  bool may_reply(std::uint64_t unique);

 private:
  class Running;
  struct Signalled {
    std::uint64_t unique = 0;
    std::chrono::steady_clock::time_point since{};
    bool was_told = false;  ///< by the kernel; else it is looked whether its caller was killed
  };

  Running& of_this_thread();
  void note(std::uint64_t unique, bool was_told);
  void run();
  void look_at_closes();
  bool is_over(const Signalled& signalled);

  const bool clustered_;
  const IsKilled is_killed_;
  std::mutex mutex_;  // before that of a Running; guards the next four
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Running>> running_;  // of each thread
  std::vector<Signalled> signalled_;
  bool is_stopped_ = false;
  std::thread thread_;
};

/// As /proc tells: a deadly signal is pending, or the process is ending by one. 0 (a caller of
/// another namespace of processes) is not.
bool is_killed(std::uint32_t thread_id);

}  // namespace kvsyncfs
