// The commands of kvsyncfs-ctl: each asks etcd or the daemon and gives the text to print.
// Thread: one.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "tools/ctl_options.h"

namespace kvsyncfs {

struct CtlAnswer {
  std::string text;
  bool is_good = true;  ///< else what was looked at is not as it should be
};

/// Errors: those of etcd, of the daemon, and of what is named, each one line for a person.
Result<CtlAnswer> run_ctl(Disk& disk, Clock& clock, const CtlOptions& options);

}  // namespace kvsyncfs
