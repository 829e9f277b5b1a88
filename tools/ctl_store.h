// Commands of kvsyncfs-ctl that change a store which nobody has mounted, and its volume's log with
// it. Thread: one.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "tools/ctl_commands.h"
#include "tools/ctl_options.h"

namespace kvsyncfs {

/// Errors: kBusy (the store is in use), those of cluster_reseed.h.
Result<CtlAnswer> change_store(Disk& disk, Clock& clock, const std::string& store,
                               const CtlOptions& options);

}  // namespace kvsyncfs
