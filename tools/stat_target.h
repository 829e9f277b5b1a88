// From what the user named to the daemon's socket. A path on a mount is found in the kernel's table
// of mounts and by reading symbolic links; the mount itself is never touched, because its daemon
// may be dead and would let the call hang. Thread: values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/env/mount_table.h"

namespace kvsyncfs {

/// Target of the symbolic link `path`; nullopt if it is something else or is missing.
using ReadLink = std::function<std::optional<std::string>(const std::string& path)>;

struct ResolvedPath {
  std::string path;                 ///< absolute, without links, "." and ".."
  std::optional<MountEntry> mount;  ///< the volume's mount that it lies on
  std::string rest = {};            ///< what of the way lies on it: "a/b", its "." taken out
};
/// Follows `path` (from the folder `working`, if it is relative) step by step and stops where it
/// enters a mount of type kMountType. Errors: kInvalid (more than 40 links).
Result<ResolvedPath> resolve(std::string_view path, std::string_view working,
                             const std::vector<MountEntry>& mounts, const ReadLink& read_link);
/// The same, as this process sees the system. Errors: also kIo.
Result<ResolvedPath> resolve(std::string_view path);

struct Target {
  std::string socket;
  std::string name;  ///< "mount /mnt/kv" or "store /srv/kv", for messages
  std::string uuid;  ///< of the store's volume; empty for a mount
};
/// The socket for a mountpoint, a path on a mount, or the folder of a store.
/// Errors: kNotFormatted (neither a mount nor a store), those of store_uuid().
Result<Target> find_target(std::string_view path);

}  // namespace kvsyncfs
