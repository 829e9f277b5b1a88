// Whatever a file or etcd holds: decoding ends, and what it accepts survives encoding. The first
// byte chooses the structure.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/format/cluster_config.h"

namespace {

template <typename T>
void require_same(const T& decoded, const kvsyncfs::Result<T>& again) {
  if (!again || *again != decoded) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      if (auto r = decode_cluster_config(text)) require_same(*r, decode_cluster_config(encode(*r)));
      break;
    case 1:
      if (auto r = decode_volume_record(text)) require_same(*r, decode_volume_record(encode(*r)));
      break;
    case 2:
      if (auto r = decode_node_record(text)) require_same(*r, decode_node_record(encode(*r)));
      break;
    default:
      static_cast<void>(parse_host_port(text));
      if (auto r = decode_secret(text)) require_same(*r, decode_secret(encode_secret(*r)));
      break;
  }
  return 0;
}
