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

namespace kvsyncfs {

inline constexpr std::string_view kRunFolder = "/run/kvsyncfs";
inline constexpr std::string_view kMountType = "fuse.kvsyncfs";

struct Mount {
  unsigned major = 0, minor = 0;
  std::string mountpoint;
  std::string type;
};

/// Lines of /proc/self/mountinfo (proc(5)), in its order; lines that do not parse are left out.
std::vector<Mount> parse_mountinfo(std::string_view text);

/// Target of the symbolic link `path`; nullopt if it is something else or is missing.
using ReadLink = std::function<std::optional<std::string>(const std::string& path)>;

struct ResolvedPath {
  std::string path;                  ///< absolute, without links, "." and ".."
  std::optional<std::size_t> mount;  ///< index of the volume's mount that it lies on
};
/// Follows `path` (from the folder `working`, if it is relative) step by step and stops where it
/// enters a mount of type kMountType. Errors: kInvalid (more than 40 links).
Result<ResolvedPath> resolve(std::string_view path, std::string_view working,
                             const std::vector<Mount>& mounts, const ReadLink& read_link);

struct Target {
  std::string socket;
  std::string name;  ///< "mount /mnt/kv" or "store /srv/kv", for messages
  std::string uuid;  ///< of the store; empty for a mount
};
/// The socket for a mountpoint, a path on a mount, or the folder of a store.
/// Errors: kNotFormatted (neither a mount nor a store), those of Engine::superblock, kInvalid.
Result<Target> find_target(std::string_view path);

}  // namespace kvsyncfs
