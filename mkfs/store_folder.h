// What lies in a folder that is, or is to become, a store. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/env/disk.h"

namespace kvsyncfs {

enum class FolderKind {
  kMissing,
  kEmpty,      ///< nothing in it, but for a lock file or the lost+found of a fresh file system
  kStore,      ///< formatted; perhaps damaged or of a newer version
  kHalfStore,  ///< what a format that was cut short leaves
  kForeign,    ///< anything else: not ours to touch
};

struct Folder {
  FolderKind kind = FolderKind::kMissing;
  std::string foreign_name;       ///< kForeign: one name that does not belong to a store
  std::uint64_t store_bytes = 0;  ///< space that emptying it would give back
};

/// Errors: kNotDirectory, kAccess, kIo.
Result<Folder> look_at_folder(Disk& disk, const std::string& path);

/// Removes what belongs to a store, the superblock first, so that what a crash leaves is no store.
/// Links are not followed. Keeps the lock file, and on demand what a node of a cluster that is not
/// finished needs to go on. Errors: kIo, kAccess.
Status empty_store_folder(Disk& disk, const std::string& path, bool keep_unfinished_node = false);

}  // namespace kvsyncfs
