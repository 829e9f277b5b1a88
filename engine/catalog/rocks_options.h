// How the catalog runs RocksDB. Thread: any.
#pragma once

#include <rocksdb/options.h>

#include "engine/catalog/catalog.h"

namespace kvsyncfs {

/// RocksDB must not write on its own what the log may not hold yet, so its own limit of a memtable
/// is this many times the size at which the engine makes a checkpoint.
inline constexpr std::uint64_t kMemtableLimitFactor = 8;

/// `env` and `listener` outlive the database.
rocksdb::Options rocks_options(const CatalogOptions& options, rocksdb::Env& env,
                               std::shared_ptr<rocksdb::EventListener> listener);

}  // namespace kvsyncfs
