// Whatever stands in a member's line: decoding ends, and a member that is accepted encodes to a
// line that is the same member.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/cluster/member.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  const auto member = decode_member({reinterpret_cast<const char*>(data), size});
  if (!member) return 0;
  const auto line = encode_member(*member);
  if (!line || line->size() > kMemberLineSizeMax) std::abort();
  const auto again = decode_member(*line);
  if (!again || *again != *member) std::abort();
  return 0;
}
