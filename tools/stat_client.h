// Asks a daemon for its counters, as long as it takes, and can be interrupted.
// Thread: values.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"

namespace kvsyncfs {

inline constexpr int kStatTimeoutMs = 5000;

/// SIGINT and SIGTERM as a descriptor to wait on, so that every wait of the tool ends at once.
/// Both stay blocked for the life of the process.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int fd() const { return fd_; }
  /// Waits; true if a signal came before `timeout_ms` passed.
  bool wait(std::int64_t timeout_ms) const;

 private:
  int fd_ = -1;
};

/// The answer to "stats", whole. `interrupt_fd` (or -1) ends the wait when it can be read.
/// A daemon that has too many clients and hangs up is asked again until the time is over.
/// Errors: those of ask() (engine/env/daemon_client.h), but kBusy where it hangs up.
Result<std::string> ask_daemon(const std::string& socket, int timeout_ms = kStatTimeoutMs,
                               int interrupt_fd = -1);

}  // namespace kvsyncfs
