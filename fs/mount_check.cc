#include "fs/mount_check.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "engine/engine.h"
#include "engine/env/mount_table.h"
#include "engine/env/real.h"
#include "fs/helper_entry.h"

namespace kvsyncfs {

namespace {

Error system_error(int error, const std::string& what) {
  const Code code = from_errno(error);
  // Codes that stand for many errnos do not say enough.
  return code == Code::kIo ? Error(code, what + ": " + std::strerror(error)) : Error(code, what);
}

/// /proc/self/mountinfo shows such paths, and the daemon changes its folder.
Result<std::string> resolve(const std::string& path) {
  char resolved[PATH_MAX];
  if (!::realpath(path.c_str(), resolved)) return system_error(errno, path);
  return std::string(resolved);
}

Status require_directory(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return system_error(errno, path);
  if (!S_ISDIR(st.st_mode)) return Error(Code::kNotDirectory, path);
  return {};
}

/// statfs(2), because the kernel has no answer of its own to it: stat(2) of a mount whose daemon
/// died may come from the kernel's cache.
bool is_dead(const std::string& path) {
  struct statfs unused {};
  return ::statfs(path.c_str(), &unused) != 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

/// What dead daemons left behind would hide the next mount's files or make it fail.
Status detach_dead_mounts(const std::string& mountpoint) {
  for (;;) {
    KVSYNCFS_ASSIGN(const auto table, read_mount_table());
    const std::string path = mount_path(mountpoint, table);
    if (!mount_at(table, path) || !is_dead(path)) return {};
    if (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
      return system_error(errno, mountpoint + ": a dead mount is in the way; umount -l it");
    std::ignore = drop_helper_entry(path);  // a line too many harms nobody
  }
}

/// A lone node's bytes would be for nobody.
Status prepare_store(MountOptions& options) {
  KVSYNCFS_ASSIGN(options.store, resolve(options.store));
  KVSYNCFS_TRY(require_directory(options.store));
  const auto disk = make_real_disk();
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(*disk, options.store));
  if ((superblock.incompatible & kIncompatibleCluster) == 0)
    return Error(Code::kInvalid, options.store + ": not a node of a cluster, it needs a mount");
  return {};
}

}  // namespace

Status prepare_mount(MountOptions& options) {
  if (options.no_mount) return prepare_store(options);
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return system_error(errno, "/dev/fuse");
  if (::geteuid() != 0)
    return Error(Code::kNotPermitted, options.mountpoint + ": only root mounts");
  KVSYNCFS_ASSIGN(options.store, resolve(options.store));
  KVSYNCFS_TRY(require_directory(options.store));
  KVSYNCFS_TRY(detach_dead_mounts(options.mountpoint));
  KVSYNCFS_ASSIGN(options.mountpoint, resolve(options.mountpoint));
  KVSYNCFS_TRY(require_directory(options.mountpoint));
  if (options.store == options.mountpoint || options.store.starts_with(options.mountpoint + "/") ||
      options.mountpoint == "/")
    return Error(Code::kInvalid,
                 options.store + ": would be hidden by the mount at " + options.mountpoint);
  return {};
}

std::string mountpoint_warning(const std::string& mountpoint) {
  std::error_code ignored;
  const bool is_empty = std::filesystem::is_empty(mountpoint, ignored);
  return is_empty || ignored
             ? ""
             : "warning: " + mountpoint + " is not empty, the mount hides its files";
}

}  // namespace kvsyncfs
