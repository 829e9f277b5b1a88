// The command of kvsyncfs-ctl that gives a volume another secret. Thread: one.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "tools/ctl_commands.h"
#include "tools/ctl_options.h"

namespace kvsyncfs {

/// Errors: those of cluster_secret.h.
Result<CtlAnswer> rotate_secret(Disk& disk, Clock& clock, const std::string& store,
                                const CtlOptions& options);

}  // namespace kvsyncfs
