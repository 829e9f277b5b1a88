// Marks of the scrub from bytes that nobody vouches for: what is accepted encodes to what it was
// decoded from.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"
#include "engine/format/scrub_mark.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(decode_scrub_mark(bytes));
  if (bytes.size() < 4) return 0;
  const std::uint32_t checksum = crc32c(as_bytes(std::string_view(bytes).substr(4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(checksum >> (8 * i));
  const Result<ScrubMark> decoded = decode_scrub_mark(bytes);
  if (decoded && encode(*decoded) != bytes) std::abort();
  return 0;
}
