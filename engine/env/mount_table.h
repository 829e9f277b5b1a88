// The kernel's table of mounts, which tells about a mount without touching it: one whose daemon
// died or hangs answers no stat(2). Thread: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

inline constexpr std::string_view kMountType = "fuse.kvsyncfs";

struct MountEntry {
  std::uint64_t device = 0;  ///< st_dev
  std::string mountpoint;    ///< absolute, without links
  std::string type;          ///< "ext4", "fuse.kvsyncfs"
  std::string source;        ///< of a kvsyncfs: its store
};

/// Lines of proc(5)'s mountinfo in their order; a line that does not parse is left out.
std::vector<MountEntry> parse_mount_table(std::string_view text);
/// /proc/self/mountinfo. Errors: kIo.
Result<std::vector<MountEntry>> read_mount_table();

/// The topmost mount at `path`: the last one hides the others.
std::optional<MountEntry> mount_at(const std::vector<MountEntry>& table, std::string_view path);

/// `path` as the table would spell it. Only folders above are looked at, and symbolic links.
std::string mount_path(const std::string& path, const std::vector<MountEntry>& table);

}  // namespace kvsyncfs
