// Superblocks from bytes that nobody vouches for: what is accepted encodes to what it was decoded
// from.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"
#include "engine/format/superblock.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(decode_superblock_file(bytes));
  static_cast<void>(parse_uuid(bytes));
  if (bytes.size() < 4) return 0;
  bytes.resize(kSuperblockSize);
  const std::uint32_t checksum = crc32c(as_bytes(std::string_view(bytes).substr(4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(checksum >> (8 * i));
  const Result<Superblock> decoded = decode_superblock(bytes);
  if (!decoded) return 0;
  const Result<Superblock> again = decode_superblock(encode(*decoded));
  if (!again || *again != *decoded) std::abort();
  return 0;
}
