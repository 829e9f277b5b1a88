// Asks a daemon something (fs/request_server.h). Thread: values.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace kvsyncfs {

struct DaemonAnswer {
  std::string text;  ///< JSON
  pid_t pid = 0;     ///< who answered, as the kernel says, in this process's terms
};

/// One question, one answer, or nothing within `timeout_ms`. Errors: kNotFound (no daemon there),
/// kTimeout (it does not answer), kAccess, kStale (it closed without a word), kIo.
Result<DaemonAnswer> ask(const std::string& socket, std::string_view request, int timeout_ms);

}  // namespace kvsyncfs
