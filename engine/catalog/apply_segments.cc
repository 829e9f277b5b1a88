// The life of segments.
#include "engine/catalog/apply.h"

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
  run.delete_segment(c.segment);
  return {};
}

}  // namespace kvsyncfs
