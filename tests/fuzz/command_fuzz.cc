// Whatever the bytes: decoding ends, and what it accepts encodes to the same bytes again.
#include <cstdint>
#include <cstdlib>

#include "engine/format/command.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto decoded = kvsyncfs::decode_transaction(bytes);
  if (decoded && kvsyncfs::encode(*decoded) != bytes) std::abort();
  return 0;
}
