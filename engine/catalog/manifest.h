// Where RocksDB's MANIFEST ends for us. RocksDB takes a record that a power loss tore for damage
// and opens no more. Each record is durable before anything relies on it, so what lies before the
// first bad one is a whole, older catalog: the log goes on from its cursor, or says that it cannot.
// Thread: any.
#pragma once

#include <cstdint>

#include "engine/base/error.h"
#include "engine/env/disk.h"

namespace kvsyncfs {

/// Bytes up to the end of the last record before the first bad one; all of the file where it has
/// records of a kind that is not known here. Source: RocksDB's wiki, "Write Ahead Log File Format".
/// Errors: kIo.
Result<std::uint64_t> whole_manifest_bytes(File& file);

}  // namespace kvsyncfs
