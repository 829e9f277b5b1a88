// The steps of making a store: the same on a lone node and in a cluster, where only the order of
// what else is written differs. Thread: one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/engine.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

inline constexpr std::uint64_t kFormatSteps = 5;  ///< of FormatOptions::progress

/// Nothing is in the folder but the lock, an empty file system's lost+found and what is `allowed`.
/// Errors: kExists, those of Disk.
Status check_folder_is_free(Disk& disk, const std::string& store,
                            std::span<const std::string_view> allowed = {});

/// The superblock of a store as the options want it. Errors: kInvalid (the size).
Result<Superblock> plan_store(const FormatOptions& options, const Timestamp& created);

/// All but the superblock, durable: catalog, segments, ballast, and the log of a store that is no
/// node of a cluster. `created`: of the root directory. Errors: those of Disk and of the rooms.
Status lay_out_store(Disk& disk, const FormatOptions& options, const Superblock& superblock,
                     const Timestamp& created);

/// The superblock, durable and read back. Errors: kCorrupt, those of Disk.
Status finish_store(Disk& disk, const FormatOptions& options, const Superblock& superblock);

}  // namespace kvsyncfs
