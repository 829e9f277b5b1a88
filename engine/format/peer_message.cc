#include "engine/format/peer_message.h"

#include "engine/format/codec.h"
#include "engine/format/segment_layout.h"

namespace kvsyncfs {
namespace {

Error corrupt(const char* what) { return {Code::kCorrupt, what}; }

}  // namespace

std::string encode(const Acknowledge& message) {
  std::string out;
  Writer(out).u64(message.position.value);
  return out;
}

std::string encode(const BatchPlace& message) {
  std::string out;
  Writer w(out);
  w.u64(message.segment.value);
  w.u64(message.page);
  return out;
}

std::string encode(const PagesWanted& message) {
  std::string out;
  Writer w(out);
  w.u64(message.segment.value);
  w.u64(message.page);
  w.u32(message.count);
  return out;
}

Result<Acknowledge> decode_acknowledge(std::string_view head) {
  Reader r(head);
  const Acknowledge message{{r.u64()}};
  if (!r.done()) return corrupt("acknowledgement: bad head");
  return message;
}

Result<BatchPlace> decode_batch_place(std::string_view head) {
  Reader r(head);
  const BatchPlace message{{r.u64()}, r.u64()};
  if (!r.done() || message.segment == kNoSegment) return corrupt("place of a batch: bad head");
  return message;
}

Result<PagesWanted> decode_pages_wanted(std::string_view head) {
  Reader r(head);
  const PagesWanted message{{r.u64()}, r.u64(), r.u32()};
  const bool good = r.done() && message.segment != kNoSegment && message.count > 0 &&
                    message.count <= kPagesPerBatchMax;
  if (!good) return corrupt("pages wanted: bad head");
  return message;
}

std::string encode_page_checksums(const std::vector<std::uint32_t>& checksums) {
  std::string out;
  Writer w(out);
  for (const std::uint32_t checksum : checksums) w.u32(checksum);
  return out;
}

Result<std::vector<std::uint32_t>> decode_page_checksums(std::string_view head) {
  const std::size_t count = head.size() / sizeof(std::uint32_t);
  if (count == 0 || count > kPagesPerBatchMax || head.size() % sizeof(std::uint32_t) != 0)
    return corrupt("checksums of pages: bad size");
  Reader r(head);
  std::vector<std::uint32_t> checksums(count);
  for (std::uint32_t& checksum : checksums) checksum = r.u32();
  return checksums;
}

}  // namespace kvsyncfs
