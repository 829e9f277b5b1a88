#include "engine/format/records.h"

#include <algorithm>

#include "engine/format/codec.h"
#include "engine/format/timestamp_codec.h"

namespace kvsyncfs {

namespace {
constexpr std::uint8_t kInodeVersion = 1;
constexpr std::uint8_t kLoneSegmentVersion = 1, kPlacedSegmentVersion = 2;
constexpr std::uint8_t kSessionVersion = 1;
constexpr std::uint8_t kFreeOrphanVersion = 1, kHeldOrphanVersion = 2;
constexpr std::uint8_t kHoldVersion = 1;

Error corrupt(const char* what) { return {Code::kCorrupt, what}; }
}  // namespace

std::string encode(const Inode& inode) {
  std::string out;
  out.reserve(142 + inode.target.size());
  Writer w(out);
  w.u8(kInodeVersion);
  w.u32(inode.mode);
  w.u32(inode.uid);
  w.u32(inode.gid);
  w.u32(inode.link_count);
  w.u64(inode.size);
  w.u64(inode.allocated_bytes);
  w.u64(inode.device);
  w.u64(inode.change);
  for (const Timestamp& t : {inode.atime, inode.mtime, inode.ctime, inode.birth}) put_time(w, t);
  w.u64(inode.parent.value);
  w.u32(inode.xattr_count);
  w.blob(inode.target);
  return out;
}

Result<Inode> decode_inode(std::string_view bytes) {
  Reader r(bytes);
  if (r.u8() != kInodeVersion) return corrupt("inode record: unknown version");
  Inode inode;
  inode.mode = r.u32();
  inode.uid = r.u32();
  inode.gid = r.u32();
  inode.link_count = r.u32();
  inode.size = r.u64();
  inode.allocated_bytes = r.u64();
  inode.device = r.u64();
  inode.change = r.u64();
  for (Timestamp* t : {&inode.atime, &inode.mtime, &inode.ctime, &inode.birth}) *t = get_time(r);
  inode.parent.value = r.u64();
  inode.xattr_count = r.u32();
  std::string_view target = r.blob();
  if (!r.done() || target.size() > kSymlinkSizeMax) return corrupt("inode record: bad field");
  inode.target = target;
  return inode;
}

std::string encode(const SegmentRecord& record) {
  std::string out;
  Writer w(out);
  w.u8(record.holders.empty() ? kLoneSegmentVersion : kPlacedSegmentVersion);
  w.u8(static_cast<std::uint8_t>(record.state));
  w.u64(record.length);
  w.u64(record.live_bytes);
  if (record.holders.empty()) return out;
  w.u64(record.owner.value);
  w.u8(static_cast<std::uint8_t>(record.holders.size()));
  for (const NodeId holder : record.holders) w.u64(holder.value);
  return out;
}

Result<SegmentRecord> decode_segment(std::string_view bytes) {
  Reader r(bytes);
  const std::uint8_t version = r.u8();
  if (version != kLoneSegmentVersion && version != kPlacedSegmentVersion)
    return corrupt("segment record: unknown version");
  std::uint8_t state = r.u8();
  SegmentRecord record;
  record.length = r.u64();
  record.live_bytes = r.u64();
  bool good = state == 1 || state == 2;
  if (version == kPlacedSegmentVersion) {
    record.owner.value = r.u64();
    const std::uint8_t count = r.u8();
    for (std::uint8_t i = 0; i < count; ++i) record.holders.push_back({r.u64()});
    good = good && are_holders(record.owner, record.holders);
  }
  if (!r.done() || !good) return corrupt("segment record: bad field");
  record.state = static_cast<SegmentState>(state);
  return record;
}

bool are_holders(NodeId owner, const std::vector<NodeId>& holders) {
  std::vector<NodeId> sorted = holders;
  std::sort(sorted.begin(), sorted.end());
  return owner.value != 0 && sorted.size() <= kHoldersMax && !sorted.empty() &&
         sorted.front().value != 0 &&
         std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
         std::binary_search(sorted.begin(), sorted.end(), owner);
}

std::string encode(const SessionRecord& record) {
  std::string out;
  Writer w(out);
  w.u8(kSessionVersion);
  w.u64(record.session.value);
  w.u64(record.incarnation.value);
  w.u64(record.features);
  w.u32(record.lease_ms);
  w.u64(record.ended.value);
  w.u64(record.last_request);
  return out;
}

Result<SessionRecord> decode_session(std::string_view bytes) {
  Reader r(bytes);
  if (r.u8() != kSessionVersion) return corrupt("session record: unknown version");
  SessionRecord record;
  record.session.value = r.u64();
  record.incarnation.value = r.u64();
  record.features = r.u64();
  record.lease_ms = r.u32();
  record.ended.value = r.u64();
  record.last_request = r.u64();
  const bool in_order = record.lives() || position_of(record.session.value) <= record.ended;
  if (!r.done() || record.session.value == 0 || record.incarnation.value == 0 || !in_order)
    return corrupt("session record: bad field");
  return record;
}

std::string encode(const OrphanRecord& record) {
  std::string out;
  Writer w(out);
  w.u8(record.holders.empty() ? kFreeOrphanVersion : kHeldOrphanVersion);
  if (record.holders.empty()) return out;
  w.u32(static_cast<std::uint32_t>(record.holders.size()));
  for (const OrphanRecord::Holder& holder : record.holders) {
    w.u64(holder.session.value);
    w.u8(holder.has_said);
  }
  return out;
}

Result<OrphanRecord> decode_orphan(std::string_view bytes) {
  Reader r(bytes);
  const std::uint8_t version = r.u8();
  OrphanRecord record;
  if (version == kFreeOrphanVersion && r.done()) return record;
  constexpr std::size_t kHolderBytes = 9;
  const std::uint32_t count = r.u32();
  bool good = version == kHeldOrphanVersion && count > 0 && count <= r.left() / kHolderBytes;
  for (std::uint32_t i = 0; good && i < count; ++i) {
    OrphanRecord::Holder holder{{r.u64()}, false};
    const std::uint8_t has_said = r.u8();
    holder.has_said = has_said == 1;
    good = has_said <= 1 && (i == 0 || record.holders.back().session < holder.session);
    record.holders.push_back(holder);
  }
  if (!good || !r.done()) return corrupt("orphan record: bad field");
  return record;
}

std::string encode(const HoldRecord& record) {
  std::string out;
  Writer w(out);
  w.u8(kHoldVersion);
  w.u64(record.position.value);
  put_time(w, record.taken);
  put_time(w, record.expires);
  w.u32(static_cast<std::uint32_t>(record.ends.size()));
  for (const HoldRecord::End& end : record.ends) {
    w.u64(end.segment.value);
    w.u64(end.bytes);
  }
  return out;
}

Result<HoldRecord> decode_hold(std::string_view bytes) {
  Reader r(bytes);
  if (r.u8() != kHoldVersion) return corrupt("hold record: unknown version");
  constexpr std::size_t kEndBytes = 16;
  HoldRecord record;
  record.position.value = r.u64();
  record.taken = get_time(r);
  record.expires = get_time(r);
  const std::uint32_t count = r.u32();
  bool good = record.position.value != 0 && count <= r.left() / kEndBytes;
  for (std::uint32_t i = 0; good && i < count; ++i) {
    const HoldRecord::End end{{r.u64()}, r.u64()};
    good = record.keeps(end.segment) && (i == 0 || record.ends.back().segment < end.segment);
    record.ends.push_back(end);
  }
  if (!good || !r.done()) return corrupt("hold record: bad field");
  return record;
}

bool is_kept(const Holds& holds, SegmentId segment) {
  return std::any_of(holds.begin(), holds.end(),
                     [segment](const auto& hold) { return hold.second.keeps(segment); });
}

}  // namespace kvsyncfs
