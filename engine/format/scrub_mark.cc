#include "engine/format/scrub_mark.h"

#include "engine/base/checksum.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kMagic = "KVSK";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kCheckedOffset = 4;  ///< the checksum covers everything from here on

}  // namespace

std::string encode(const ScrubMark& mark) {
  std::string body;
  Writer writer(body);
  writer.raw(kMagic);
  writer.u32(kVersion);
  writer.u32(0);
  writer.u64(mark.volume_tag);
  writer.u64(mark.segment.value);
  writer.u64(mark.page);
  writer.i64(mark.begun_seconds);
  writer.u32(mark.bad_now);
  writer.u32(mark.bad_before);

  std::string bytes;
  Writer(bytes).u32(crc32c(as_bytes(body)));
  return bytes + body;
}

Result<ScrubMark> decode_scrub_mark(std::string_view bytes) {
  const auto bad = [](const char* why) { return Error(Code::kCorrupt, why); };
  if (bytes.size() != kScrubMarkSize) return bad("scrub mark: bad size");
  Reader reader(bytes);
  const std::uint32_t checksum = reader.u32();
  if (reader.raw(kMagic.size()) != kMagic) return bad("scrub mark: no magic");
  if (crc32c(as_bytes(bytes.substr(kCheckedOffset))) != checksum)
    return bad("scrub mark: bad checksum");
  if (reader.u32() != kVersion) return Error(Code::kNewerFormat, "scrub mark");
  if (reader.u32() != 0) return bad("scrub mark: field out of range");
  ScrubMark mark;
  mark.volume_tag = reader.u64();
  mark.segment = {reader.u64()};
  mark.page = reader.u64();
  mark.begun_seconds = reader.i64();
  mark.bad_now = reader.u32();
  mark.bad_before = reader.u32();
  if (!reader.done()) return bad("scrub mark: bad size");
  return mark;
}

}  // namespace kvsyncfs
