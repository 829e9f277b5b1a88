// A batch: the entries of the shared log that one etcd transaction carries, as the value of its
// key.
//
//   u32 magic "KVEB" · u16 version 1 · u16 zero · u32 entry count · count times (u32 size, bytes) ·
//   u32 CRC32C of all before it. Little-endian. Pure. Thread: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

inline constexpr std::size_t kEtcdBatchOverhead = 16;      ///< bytes beside the entries
inline constexpr std::size_t kEtcdEntryOverhead = 4;       ///< bytes beside one entry's own
inline constexpr std::size_t kEtcdBatchEntriesMax = 4096;  ///< a decoder takes no more

std::string encode_etcd_batch(const std::vector<std::string_view>& entries);

/// Entries borrowed from `value`; at least one. Errors: kCorrupt, kNewerFormat.
Result<std::vector<std::string_view>> decode_etcd_batch(std::string_view value);

}  // namespace kvsyncfs
