// A thread that no signal reaches: they are for the thread that serves the mount. Thread: any.
#pragma once

#include <functional>
#include <thread>

#include "engine/base/error.h"

namespace kvsyncfs {

/// Into `thread`, which is none yet. Errors: kNoMemory (no more threads may be started).
Status start_quiet_thread(std::thread& thread, std::function<void()> run);

}  // namespace kvsyncfs
