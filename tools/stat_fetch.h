// The counters of the daemon that serves a target. Thread: values.
#pragma once

#include "engine/base/error.h"
#include "tools/stat_client.h"
#include "tools/stat_model.h"
#include "tools/stat_target.h"

namespace kvsyncfs {

/// Errors, which name the target: those of ask_daemon and StatDocument::parse; kNotFound also where
/// another store's daemon answers. A killed daemon leaves its names in kRunFolder, and one of them
/// leads to the socket of whoever got the device number next.
Result<StatDocument> fetch(const Target& target, int timeout_ms = kStatTimeoutMs,
                           int interrupt_fd = -1);

}  // namespace kvsyncfs
