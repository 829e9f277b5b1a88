// Byte layout of the log's files: rows of batches of entries. Field table: kvsyncfs-format(5),
// "Log".
//
// A batch starts at a multiple of kBatchUnit: a header of kBatchHeaderSize bytes, then its payload
// (entries: u32 size, bytes), then zeros up to the next multiple. The checksum covers header and
// payload. A batch names the volume, the file's generation and its own offset, so that a batch of a
// file's former life, of another volume or at a wrong place is not taken for a valid one. Pure.
// Thread: any.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

inline constexpr std::size_t kBatchUnit = 4096;      ///< bytes; direct I/O wants it
inline constexpr std::size_t kBatchHeaderSize = 64;  ///< bytes
inline constexpr std::size_t kEntryHeaderSize = 4;   ///< bytes: the entry's size
inline constexpr std::uint32_t kBatchVersion = 1;

struct BatchHeader {
  std::uint64_t volume_tag = 0;
  std::uint64_t generation = 0;   ///< of the file
  std::uint64_t file_offset = 0;  ///< where this batch starts in its file, bytes
  Position first;                 ///< of its first entry
  std::uint32_t entry_count = 0;  ///< at least 1
  std::uint64_t payload_bytes = 0;
  Position durable;  ///< what was known to be on stable storage when this batch was written

  Position last() const { return {first.value + entry_count - 1}; }
  std::uint64_t stored_bytes() const {
    return round_up(kBatchHeaderSize + payload_bytes, kBatchUnit);
  }
  auto operator<=>(const BatchHeader&) const = default;
};

/// Appends one entry's bytes at `payload`, which has room for kEntryHeaderSize + entry.size()
/// bytes.
void put_entry(std::byte* payload, std::string_view entry);

/// Writes header and checksum into `batch`: kBatchHeaderSize bytes to be filled, then the payload.
/// Requires batch.size() == kBatchHeaderSize + header.payload_bytes.
void seal_batch(const BatchHeader& header, MutableBytes batch);

/// Reads the fields without the checksum: good enough to know how many bytes to read, not to be
/// believed. Errors: kCorrupt (no magic, short, or counts that cannot be).
Result<BatchHeader> peek_batch(Bytes bytes);

/// Verifies checksum, version and the frames of all entries of a batch at the start of `bytes`
/// (more may follow). Errors: kCorrupt, kNewerFormat.
Result<BatchHeader> decode_batch(Bytes bytes);

/// Takes the next entry off a verified batch's payload; false at its end or at a bad frame.
bool next_entry(Bytes& payload, std::string_view& entry);

}  // namespace kvsyncfs
