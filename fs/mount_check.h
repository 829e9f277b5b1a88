// What can be told to be wrong before the daemon goes to the background, and
// the paths it needs. Thread: one.
#pragma once

#include <string>

#include "fs/options.h"

namespace kvsyncfs {

/// Makes the paths of `options` absolute and free of links, and detaches a
/// mount whose daemon died from the mount point. Without a mount: looks whether
/// the store is a node's. Errors: kAccess, kNotPermitted, kNotFound,
/// kNotDirectory, kInvalid, kIo, each naming the object; without a mount also
/// those of Engine::superblock().
Status prepare_mount(MountOptions& options);

/// A word about files that the mount is going to hide, or nothing.
std::string mountpoint_warning(const std::string& mountpoint);

}  // namespace kvsyncfs
