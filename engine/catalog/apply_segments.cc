// The life of segments.
#include <algorithm>
#include <utility>

#include "engine/catalog/apply.h"
#include "engine/format/cluster_config.h"

namespace kvsyncfs {

Status run_command(CommandRun& run, const OpenSegmentCommand&) {
  run.result.segment = {run.new_id()};
  run.put_segment(run.result.segment, {});
  return {};
}

Status run_command(CommandRun& run, const OpenPlacedSegmentCommand& c) {
  if (!are_holders(c.owner, c.holders)) return Code::kInvalid;
  SegmentRecord record;
  record.owner = c.owner;
  record.holders = c.holders;
  run.result.segment = {run.new_id()};
  run.put_segment(run.result.segment, record);
  return {};
}

Status run_command(CommandRun& run, const SetHoldersCommand& c) {
  if (!are_holders(c.owner, c.holders)) return Code::kInvalid;
  auto record = run.find_segment(c.segment);
  if (!record) return Code::kNotFound;
  record->owner = c.owner;
  record->holders = c.holders;
  run.put_segment(c.segment, *record);
  return {};
}

Status run_command(CommandRun& run, const SealSegmentCommand& c) {
  auto record = run.find_segment(c.segment);
  if (!record) return Code::kNotFound;
  if (record->state == SegmentState::kSealed)
    return record->length == c.length ? Status{} : Status(Code::kInvalid);
  record->state = SegmentState::kSealed;
  record->length = c.length;
  run.put_segment(c.segment, *record);
  return {};
}

Status run_command(CommandRun& run, const DeleteSegmentCommand& c) {
  auto record = run.find_segment(c.segment);
  if (!record) return Code::kNotFound;
  if (record->state != SegmentState::kSealed || record->live_bytes != 0) return Code::kBusy;
  if (is_kept(run.holds(), c.segment)) return Code::kBusy;
  run.delete_segment(c.segment);
  return {};
}

namespace {

/// Up to where extents refer to it. One without a length ends the walk: fsck tells of it.
Result<std::uint64_t> end_of_references(const Tables& tables, SegmentId segment) {
  constexpr std::size_t kChunk = 4096;
  for (std::uint64_t end = 0;;) {
    KVSYNCFS_ASSIGN(const auto extents, tables.segment_extents(segment, end, kChunk));
    const std::uint64_t before = end;
    for (const auto& [inode, e] : extents) end = std::max(end, e.segment_offset + e.length);
    if (end == before) return end;
  }
}

}  // namespace

Status run_command(CommandRun& run, const HoldSegmentsCommand& c) {
  if (!is_cluster_name(c.name)) return Code::kInvalid;
  const Holds holds = run.holds();
  if (holds.contains(c.name)) return Code::kExists;
  if (holds.size() >= kHoldsMax) return Code::kTooBig;
  HoldRecord record{run.position(), c.time, c.expires, {}};
  for (const auto& [id, segment] : run.tables().segments()) {
    if (segment.state != SegmentState::kOpen || !record.keeps(id)) continue;
    KVSYNCFS_ASSIGN(const std::uint64_t end, end_of_references(run.tables(), id));
    if (end > 0) record.ends.push_back({id, end});
  }
  run.put_hold(c.name, std::move(record));
  return {};
}

Status run_command(CommandRun& run, const ReleaseHoldCommand& c) {
  const Holds holds = run.holds();
  const auto found = holds.find(c.name);
  if (found == holds.end() || found->second.position != c.position) return Code::kNotFound;
  run.erase_hold(c.name);
  return {};
}

}  // namespace kvsyncfs
