// A process of its own that ends the FUSE connection of a daemon that stopped answering (stopped,
// swapped out, deadlocked), so that nobody hangs on the mount for ever: callers get ENOTCONN, and
// umount works.
//
// It is forked before the daemon has threads, files or locks, and waits. From watch() on it asks
// for a sign of life three times per timeout; after twice the timeout without one it aborts the
// connection, says so in the system log, and ends. Time in which it was itself frozen does not
// count. It ends with the daemon, however that ends. Thread: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "engine/base/error.h"

namespace kvsyncfs {

class Watchdog {
 public:
  Watchdog() = default;
  ~Watchdog();  ///< as stop(); closes heartbeat()
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Forks. Requires: no thread was started yet. Errors: kNoMemory.
  Status start(std::uint64_t timeout_s, const std::string& mountpoint);
  /// Each byte that comes in here wants one back (StatsServer does that); -1 before start(). It
  /// stays open, at its end, after stop(): its reader may go later.
  int heartbeat() const { return fd_; }
  /// The mount is there and its heartbeat is answered: watch it. `device` is its st_dev.
  void watch(std::uint64_t device) const;
  /// Before the mount goes: its device number may be another one's afterwards. No process is left.
  void stop();

 private:
  int fd_ = -1;
  pid_t child_ = -1;
};

inline constexpr int kMissedMax = 6;  ///< signs of life in a row, at a third of the timeout each

enum class WatchEnd { kDaemonEnded, kSilent };
/// The watching itself: asks at the socket `fd` every `interval_ms`; returns when the other end is
/// closed, or after kMissedMax intervals without an answer.
WatchEnd watch_heartbeat(int fd, int interval_ms);

}  // namespace kvsyncfs
