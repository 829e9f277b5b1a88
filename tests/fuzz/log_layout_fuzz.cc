// Batches of the log from bytes that nobody vouches for: a decoder stays in bounds and gives only
// entries that lie in its input. With a checksum made right, so that what lies behind it is reached
// too.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/base/checksum.h"
#include "engine/format/log_layout.h"

namespace {

using namespace kvsyncfs;

void require(bool holds) {
  if (!holds) std::abort();
}

void decode(Bytes bytes) {
  const Result<BatchHeader> header = decode_batch(bytes);
  if (!header) return;
  require(header->payload_bytes + kBatchHeaderSize <= bytes.size());
  require(header->entry_count > 0 && header->durable < header->first);
  Bytes payload = bytes.subspan(kBatchHeaderSize, header->payload_bytes);
  std::string_view entry;
  std::uint32_t count = 0;
  std::size_t size = 0;
  for (; next_entry(payload, entry); ++count) size += kEntryHeaderSize + entry.size();
  require(count == header->entry_count && size == header->payload_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  decode(as_bytes(bytes));
  Bytes payload = as_bytes(bytes);
  std::string_view entry;
  while (next_entry(payload, entry)) {
  }
  const Result<BatchHeader> header = peek_batch(as_bytes(bytes));
  if (!header || header->payload_bytes > size - kBatchHeaderSize) return 0;
  const std::size_t covered = kBatchHeaderSize + header->payload_bytes - 8;
  const std::uint32_t checksum = crc32c(as_bytes(bytes).subspan(8, covered));
  for (std::size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>(checksum >> (8 * i));
  decode(as_bytes(bytes));
  return 0;
}
