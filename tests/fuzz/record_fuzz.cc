// Whatever the bytes of a record: decoding ends, and what it accepts encodes to the same bytes
// again. The first byte chooses the record; small values get a key that is part of the input.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/catalog/keys.h"
#include "engine/catalog/posix_acl.h"
#include "engine/format/lock_table.h"
#include "engine/format/records.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view key = bytes.substr(0, 17);
  const std::string_view value = bytes.substr(key.size());
  switch (data[0] % 12) {
    case 0:
      if (auto r = decode_inode(bytes)) require(encode(*r) == bytes);
      break;
    case 1:
      if (auto r = decode_segment(bytes)) require(encode(*r) == bytes);
      break;
    case 2:
      if (auto r = decode_dentry(key, value)) require(encode_dentry(*r) == value);
      break;
    case 3:
      if (auto r = decode_listing(key, value)) require(encode_listing(*r) == value);
      break;
    case 4:
      if (auto r = decode_extent(key, value)) require(encode_extent(*r) == value);
      break;
    case 5:
      if (auto r = decode_length(bytes)) require(encode_length(*r) == bytes);
      break;
    case 6:
      if (auto r = decode_cursor(bytes)) require(bytes[0] == 1 || encode_cursor(*r) == bytes);
      break;
    case 11:
      if (auto r = decode_hold(bytes)) require(encode(*r) == bytes);
      break;
    case 8:
      if (auto r = decode_session(bytes)) require(encode(*r) == bytes);
      break;
    case 9:
      if (auto r = decode_orphan(bytes)) require(encode(*r) == bytes);
      break;
    case 10:
      if (auto r = decode_lock_table(bytes)) require(encode(*r) == bytes);
      break;
    default:
      if (auto r = parse_acl(bytes)) require(encode_acl(*r) == bytes);
      break;
  }
  return 0;
}
