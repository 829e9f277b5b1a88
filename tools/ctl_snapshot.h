// Saved catalogs, as kvsyncfs-ctl makes, lists and releases them. Thread: one.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "tools/ctl_commands.h"
#include "tools/ctl_daemon.h"
#include "tools/ctl_options.h"

namespace kvsyncfs {

/// Saves the catalog to the file that `options` names. The file has its name only when it is whole
/// and durable; where that fails, its hold is released again. Errors: kExists (the file), kInvalid
/// (no name for the hold), those of the daemon and of Disk.
Result<CtlAnswer> snapshot_catalog(Disk& disk, Clock& clock, const CtlDaemon& daemon,
                                   const CtlOptions& options);
Result<CtlAnswer> list_snapshots(const CtlDaemon& daemon, const CtlOptions& options);
Result<CtlAnswer> release_snapshot(const CtlDaemon& daemon, const CtlOptions& options);

/// The daemon's answer as a table. Pure.
std::string snapshots_text(const boost::json::object& answer);
/// The name of a hold for a file: what was asked for, or the file's own. Errors: kInvalid.
Result<std::string> hold_name(const std::string& file, const std::string& asked);

}  // namespace kvsyncfs
