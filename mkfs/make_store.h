// What mkfs.kvsyncfs does: checks, empties, formats, verifies. Thread: one.
#pragma once

#include <functional>

#include "engine/engine.h"
#include "mkfs/mkfs_options.h"

namespace kvsyncfs {

struct Seams {
  Disk& disk;
  Clock& clock;
  Random& random;
};

/// Bytes beside the file data: log files, and a share for the catalog.
std::uint64_t overhead_bytes(std::uint64_t size_bytes);

/// Leaves a store that was verified, by opening it where it is a lone node's, or what was there
/// before; a failure after --force began to empty leaves an empty folder, one of which the cluster
/// may know leaves what the next try needs. Returns the new superblock. Errors: kExists, kNotEmpty,
/// kBusy, kInvalid, kNoSpace, kNotFound (parent), kNotDirectory, kAccess, kIo, those of
/// format_cluster_store().
Result<Superblock> make_store(const Seams& seams, const MkfsOptions& options,
                              const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace kvsyncfs
