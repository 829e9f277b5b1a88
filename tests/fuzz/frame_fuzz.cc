// Whatever the bytes of a frame: decoding ends, and what it accepts encodes to the same bytes again
// (the handshake ignores bytes behind what it knows). The first byte chooses the part.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/format/frame.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      if (auto r = decode_frame_header(bytes)) require(bytes.starts_with(encode(*r)));
      break;
    case 1:
      if (auto r = decode_frame_trailer(bytes)) require(encode(*r) == bytes);
      break;
    case 2:
      if (auto r = decode_hello(bytes)) require(bytes.starts_with(encode(*r)));
      break;
    case 3:
      if (auto r = decode_challenge(bytes)) require(bytes.starts_with(encode(*r)));
      break;
    case 4:
      if (auto r = decode_welcome(bytes)) require(bytes.starts_with(encode(*r)));
      break;
    default:
      if (auto r = decode_read_range(bytes)) require(encode(*r) == bytes);
      break;
  }
  return 0;
}
