#include "engine/base/checksum.h"

#include <isa-l/crc.h>

#include <climits>

namespace kvsyncfs {

// crc32_iscsi neither inverts its seed nor its result, RFC 3720 does both; and it counts in int.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  constexpr std::size_t kPieceSizeMax = std::size_t{1} << 30;
  static_assert(kPieceSizeMax <= INT_MAX);
  std::uint32_t state = ~seed;
  while (!bytes.empty()) {
    const auto piece = bytes.first(bytes.size() < kPieceSizeMax ? bytes.size() : kPieceSizeMax);
    // The library reads only, its C prototype lacks the const.
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
}

}  // namespace kvsyncfs
