#include "engine/format/peer_message.h"

#include "engine/base/checksum.h"
#include "engine/format/codec.h"
#include "engine/format/segment_layout.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kSnapshotKeySizeMax = 512;  // of the log or of the catalog

Error corrupt(const char* what) { return {Code::kCorrupt, what}; }

}  // namespace

std::string encode(const Acknowledge& message) {
  std::string out;
  Writer w(out);
  w.u64(message.position.value);
  w.u64(message.history_position.value);
  w.u32(message.history_digest);
  w.u64(message.incarnation.value);
  w.u64(message.to.value);
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

std::string encode(const SnapshotWanted& message) {
  std::string out;
  Writer(out).u64(message.at_least.value);
  return out;
}

std::string encode(const SnapshotOpened& message) {
  std::string out;
  Writer w(out);
  w.u64(message.snapshot);
  w.u64(message.position.value);
  w.u64(message.records);
  w.u64(message.batch_index);
  w.i64(message.batch_revision);
  w.blob(message.batch_key);
  return out;
}

std::string encode(const RecordsWanted& message) {
  std::string out;
  Writer w(out);
  w.u64(message.snapshot);
  w.blob(message.after);
  return out;
}

std::string encode(const SnapshotPiece& message) {
  std::string out;
  Writer(out).u32(message.checksum);
  return out;
}

std::uint32_t snapshot_checksum(const RecordsWanted& wanted, Bytes piece) {
  return crc32c(piece, crc32c(as_bytes(encode(wanted))));
}

std::string encode(const BatchSpan& message) {
  std::string out;
  Writer w(out);
  w.u64(message.page);
  w.u32(message.count);
  return out;
}

Result<BatchSpan> decode_batch_span(std::string_view head) {
  Reader r(head);
  const BatchSpan message{r.u64(), r.u32()};
  const bool good = r.done() && message.count > 1 && message.count <= kPagesPerBatchMax + 1;
  if (!good) return corrupt("span of a batch: bad head");
  return message;
}

Result<Acknowledge> decode_acknowledge(std::string_view head) {
  Reader r(head);
  const Acknowledge message{{r.u64()}, {r.u64()}, r.u32(), {r.u64()}, {r.u64()}};
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

Result<SnapshotWanted> decode_snapshot_wanted(std::string_view head) {
  Reader r(head);
  const SnapshotWanted message{{r.u64()}};
  if (!r.done()) return corrupt("snapshot wanted: bad head");
  return message;
}

Result<SnapshotOpened> decode_snapshot_opened(std::string_view head) {
  Reader r(head);
  SnapshotOpened message;
  message.snapshot = r.u64();
  message.position.value = r.u64();
  message.records = r.u64();
  message.batch_index = r.u64();
  message.batch_revision = r.i64();
  message.batch_key = r.blob();
  const bool told = message.batch_index != 0;
  const bool good = r.done() && message.snapshot != 0 && told == (message.batch_revision > 0) &&
                    told == !message.batch_key.empty() &&
                    message.batch_key.size() <= kSnapshotKeySizeMax;
  if (!good) return corrupt("snapshot opened: bad head");
  return message;
}

Result<RecordsWanted> decode_records_wanted(std::string_view head) {
  Reader r(head);
  RecordsWanted message;
  message.snapshot = r.u64();
  message.after = r.blob();
  if (!r.done() || message.after.size() > kSnapshotKeySizeMax)
    return corrupt("records wanted: bad head");
  return message;
}

Result<SnapshotPiece> decode_snapshot_piece(std::string_view head) {
  Reader r(head);
  const SnapshotPiece message{r.u32()};
  if (!r.done()) return corrupt("piece of a snapshot: bad head");
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
