// Which of the two folders of a store is its catalog. A file without content says it, so that a
// catalog takes the place of another one with one change of a name. Thread: any; one call at a
// time.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/env/disk.h"

namespace kvsyncfs {

/// Errors of all: those of Disk.

/// The folder that is in use, as a path.
Result<std::string> catalog_folder(Disk& disk, const std::string& store);
/// The other one: it may hold what is left of a catalog that was not finished, or that was
/// replaced.
Result<std::string> spare_catalog_folder(Disk& disk, const std::string& store);
/// Its number: 1 or 2.
Result<std::uint32_t> spare_catalog_number(Disk& disk, const std::string& store);
/// From now on the one of that number is in use; durable when it returns.
Status use_catalog_folder(Disk& disk, const std::string& store, std::uint32_t number);
/// From now on the other one is in use; durable when it returns. After an error either is.
Status swap_catalog_folders(Disk& disk, const std::string& store);

// A catalog that was found wrong is replaced at the next mount: a mark says so until then.

Status doubt_catalog_folder(Disk& disk, const std::string& store);
Result<bool> is_catalog_doubted(Disk& disk, const std::string& store);
/// Nothing happens where there is no mark.
Status trust_catalog_folder(Disk& disk, const std::string& store);

}  // namespace kvsyncfs
