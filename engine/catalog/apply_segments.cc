// The life of segments, and the end of orphans.
#include "engine/catalog/apply.h"

namespace kvsyncfs {

Status run_command(CommandRun& run, const ReclaimCommand& c) {
  KVSYNCFS_ASSIGN(StagedInode * inode, run.load(c.inode));
  KVSYNCFS_ASSIGN(bool orphan, run.is_orphan(c.inode));
  if (!orphan) return Code::kInvalid;
  run.result.inode = c.inode;
  if (inode->inode.allocated_bytes != 0) {
    KVSYNCFS_ASSIGN(auto first, run.extents(c.inode, 0, kFileSizeMax + 1, kReclaimExtentsMax));
    if (!first.empty()) KVSYNCFS_TRY(run.replace(*inode, 0, first.back().file_end(), {}));
    run.result.more = first.size() == kReclaimExtentsMax;
    if (run.result.more) return {};
  }
  KVSYNCFS_ASSIGN(auto names, run.xattr_names(*inode));
  for (const std::string& name : names) run.delete_xattr(*inode, name);
  run.remove_orphan(c.inode);
  run.remove(*inode);
  return {};
}

Status run_command(CommandRun& run, const OpenSegmentCommand&) {
  run.result.segment = {run.new_id()};
  run.put_segment(run.result.segment, {});
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
