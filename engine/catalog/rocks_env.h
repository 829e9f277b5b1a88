// RocksDB's view of our Disk: all of its file I/O goes through the seam, a simulated one included.
// Its threads, its clock and its mutexes stay its own. Thread: any.
#pragma once

#include <rocksdb/env.h>

#include <memory>

#include "engine/base/error.h"
#include "engine/env/disk.h"

namespace kvsyncfs {

/// The Disk outlives the environment.
std::unique_ptr<rocksdb::Env> make_rocks_env(Disk& disk);

/// Our code for what RocksDB says; its text becomes the detail. Requires: !status.ok().
Error from_rocks(const rocksdb::Status& status);

}  // namespace kvsyncfs
