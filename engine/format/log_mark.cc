#include "engine/format/log_mark.h"

#include <cassert>

#include "engine/base/checksum.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kMagic = "KVLM";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kCheckedOffset = 4;  ///< the checksum covers everything from here on

bool in_range(const LogMark& mark) {
  return mark.index > 0 && mark.revision > 0 && !mark.key.empty() &&
         mark.key.size() <= kLogMarkKeySizeMax;
}

}  // namespace

std::string encode(const LogMark& mark) {
  assert(in_range(mark));
  std::string body;
  Writer writer(body);
  writer.raw(kMagic);
  writer.u32(kVersion);
  writer.u32(static_cast<std::uint32_t>(mark.key.size()));
  writer.u64(mark.volume_tag);
  writer.u64(mark.index);
  writer.i64(mark.revision);
  writer.raw(mark.key);

  std::string bytes;
  Writer(bytes).u32(crc32c(as_bytes(body)));
  return bytes + body;
}

Result<LogMark> decode_log_mark(std::string_view bytes) {
  const auto bad = [](const char* why) { return Error(Code::kCorrupt, why); };
  if (bytes.size() < kLogMarkHeaderSize || bytes.size() > kLogMarkSizeMax)
    return bad("log mark: bad size");
  Reader reader(bytes);
  const std::uint32_t checksum = reader.u32();
  if (reader.raw(kMagic.size()) != kMagic) return bad("log mark: no magic");
  if (crc32c(as_bytes(bytes.substr(kCheckedOffset))) != checksum)
    return bad("log mark: bad checksum");
  if (reader.u32() != kVersion) return Error(Code::kNewerFormat, "log mark");
  const std::uint32_t key_size = reader.u32();
  LogMark mark;
  mark.volume_tag = reader.u64();
  mark.index = reader.u64();
  mark.revision = reader.i64();
  mark.key = reader.raw(key_size);
  if (!reader.done() || !in_range(mark)) return bad("log mark: field out of range");
  return mark;
}

}  // namespace kvsyncfs
