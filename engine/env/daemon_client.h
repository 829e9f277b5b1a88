// Asks a daemon something, as a program beside it: one line to its Unix socket, one document back
// (fs/request_server.h). And where the sockets are. Thread: values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace kvsyncfs {

/// A daemon's sockets: /run/kvsyncfs/<major>-<minor>.sock, after the device number of its mount,
/// and <uuid>.sock, a second name of the same socket.
inline constexpr std::string_view kRunFolder = "/run/kvsyncfs";
inline constexpr std::size_t kAnswerSizeMax = 16u << 20;  ///< bytes

/// Name of the socket of the mount with this st_dev.
std::string socket_name(std::uint64_t device);

struct DaemonAnswer {
  std::string text;  ///< JSON and a newline
  pid_t pid = 0;     ///< who answered, as the kernel says, in this process's terms
};

/// One question, one answer, or nothing within `timeout_ms`. `interrupt_fd` (or -1) ends the wait
/// when it can be read. Errors: kNotFound (no daemon there), kTimeout (it does not answer), kStale
/// (it closed without a whole answer), kShutdown (interrupted), kTooBig (beyond kAnswerSizeMax),
/// kAccess, kNameTooLong, kNoMemory, kIo.
Result<DaemonAnswer> ask(const std::string& socket, std::string_view request, int timeout_ms,
                         int interrupt_fd = -1);

}  // namespace kvsyncfs
