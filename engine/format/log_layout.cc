#include "engine/format/log_layout.h"

#include <cassert>
#include <cstring>
#include <string>

#include "engine/base/checksum.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kMagic = "KVLB";
constexpr std::size_t kChecksumOffset = 4;
constexpr std::size_t kCheckedOffset = 8;  ///< the checksum covers everything from here on

std::uint32_t checksum_of(Bytes batch) { return crc32c(batch.subspan(kCheckedOffset)); }

}  // namespace

void put_entry(std::byte* payload, std::string_view entry) {
  const auto size = static_cast<std::uint32_t>(entry.size());
  for (std::size_t i = 0; i < kEntryHeaderSize; ++i)
    payload[i] = static_cast<std::byte>(size >> (8 * i));
  if (!entry.empty()) std::memcpy(payload + kEntryHeaderSize, entry.data(), entry.size());
}

void seal_batch(const BatchHeader& header, MutableBytes batch) {
  assert(batch.size() == kBatchHeaderSize + header.payload_bytes);
  std::string bytes;
  Writer writer(bytes);
  writer.raw(kMagic);
  writer.u32(0);  // the checksum, below
  writer.u32(kBatchVersion);
  writer.u32(header.entry_count);
  writer.u64(header.volume_tag);
  writer.u64(header.generation);
  writer.u64(header.file_offset);
  writer.u64(header.first.value);
  writer.u64(header.durable.value);
  writer.u64(header.payload_bytes);
  assert(bytes.size() == kBatchHeaderSize);
  std::memcpy(batch.data(), bytes.data(), bytes.size());
  const std::uint32_t checksum = checksum_of(batch);
  for (std::size_t i = 0; i < sizeof checksum; ++i)
    batch[kChecksumOffset + i] = static_cast<std::byte>(checksum >> (8 * i));
}

Result<BatchHeader> peek_batch(Bytes bytes) {
  Reader reader(as_string(bytes));
  const bool magic = reader.raw(kMagic.size()) == kMagic;
  reader.u32();  // checksum
  reader.u32();  // version
  BatchHeader header;
  header.entry_count = reader.u32();
  header.volume_tag = reader.u64();
  header.generation = reader.u64();
  header.file_offset = reader.u64();
  header.first.value = reader.u64();
  header.durable.value = reader.u64();
  header.payload_bytes = reader.u64();
  constexpr std::uint64_t kSane = std::uint64_t{1} << 62;  // sums of two stay in range
  if (!reader.ok() || !magic || header.entry_count == 0 || header.first.value == 0 ||
      header.first.value >= kSane || header.payload_bytes >= kSane ||
      header.payload_bytes / kEntryHeaderSize < header.entry_count ||
      header.durable >= header.first)
    return Code::kCorrupt;
  return header;
}

Result<BatchHeader> decode_batch(Bytes bytes) {
  KVSYNCFS_ASSIGN(const BatchHeader header, peek_batch(bytes));
  if (header.payload_bytes > bytes.size() - kBatchHeaderSize) return Code::kCorrupt;
  const Bytes batch = bytes.first(kBatchHeaderSize + header.payload_bytes);
  Reader fields(as_string(batch).substr(kChecksumOffset));
  if (fields.u32() != checksum_of(batch)) return Code::kCorrupt;
  if (fields.u32() != kBatchVersion) return Code::kNewerFormat;

  Bytes payload = batch.subspan(kBatchHeaderSize);
  std::string_view entry;
  std::uint32_t count = 0;
  while (next_entry(payload, entry)) ++count;
  if (count != header.entry_count || !payload.empty()) return Code::kCorrupt;
  return header;
}

bool next_entry(Bytes& payload, std::string_view& entry) {
  if (payload.size() < kEntryHeaderSize) return false;
  Reader reader(as_string(payload));
  const std::size_t size = reader.u32();
  if (size > payload.size() - kEntryHeaderSize) return false;
  entry = as_string(payload.subspan(kEntryHeaderSize, size));
  payload = payload.subspan(kEntryHeaderSize + size);
  return true;
}

}  // namespace kvsyncfs
