// What can be told to be wrong before the daemon goes to the background, and
// the paths it needs. Thread: one.
#pragma once

#include <string>

#include "fs/options.h"

namespace kvsyncfs {

/// Makes both paths of `options` absolute and free of links, and detaches a
/// mount whose daemon died from the mount point. Errors: kAccess,
/// kNotPermitted, kNotFound, kNotDirectory, kInvalid, kIo, each naming the
/// object.
Status prepare_mount(MountOptions& options);

/// A word about files that the mount is going to hide, or nothing.
std::string mountpoint_warning(const std::string& mountpoint);

}  // namespace kvsyncfs
