// The cleaner: gives the space of dead bytes back by moving what is live out of a segment and
// removing it.
//
// A segment is removed only after the moves, and the record that deletes it, are durable: a
// recovery never comes back to a catalog that points into it. Source of the choice of victims:
// Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System", 1992,
// section 3.5 (cost-benefit).
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {
constexpr std::size_t kMovesPerTransaction = 1024;
constexpr std::uint64_t kMoveBytesMax = 4u << 20;
}  // namespace

Result<bool> EngineImpl::clean_one(double dead_share_min) {
  KVSYNCFS_TRY(remove_dropped());
  bool empty = false;
  KVSYNCFS_ASSIGN(const SegmentId victim, pick_victim(dead_share_min, &empty));
  if (victim == kNoSegment) return false;
  if (!empty) {
    auto moved = move_live_bytes(victim);
    if (!moved && moved.error().code == Code::kCorrupt) {
      // Its good bytes stay readable where they are; space is made elsewhere.
      options_.warn("cleaner leaves a damaged segment alone: " + describe(moved.error()));
      damaged_segments_.insert(victim);
      return true;
    }
    KVSYNCFS_TRY(std::move(moved));
  }
  KVSYNCFS_TRY(drop_segment(victim));
  counts_.cleaned_segments.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// The sealed segment with the best ratio of space freed times age to bytes moved; kNoSegment if
/// none that may go has that share of dead bytes. Age is rank by id: ids grow with time.
Result<SegmentId> EngineImpl::pick_victim(double dead_share_min, bool* empty) {
  KVSYNCFS_ASSIGN(const auto segments, catalog_->segments());
  const Holds holds = catalog_->holds();
  SegmentId best = kNoSegment;
  double best_score = 0;
  std::size_t rank = 0;
  for (const auto& [id, record] : segments) {
    ++rank;
    if (record.state != SegmentState::kSealed || damaged_segments_.contains(id)) continue;
    if (cluster_ && record.owner != options_.cluster->node) continue;
    if (is_kept(holds, id)) continue;  // moving its bytes would give nothing back
    if (record.live_bytes == 0) {
      *empty = true;
      return id;
    }
    const double size = static_cast<double>(std::max<std::uint64_t>(record.length, 1));
    const double used = std::min(1.0, static_cast<double>(record.live_bytes) / size);
    if (1.0 - used < dead_share_min) continue;
    const auto age = static_cast<double>(segments.size() - rank + 1);
    const double score = (1.0 - used) * age / (1.0 + used);
    if (score > best_score) {
      best_score = score;
      best = id;
    }
  }
  return best;
}

Status EngineImpl::move_live_bytes(SegmentId victim) {
  AlignedBuffer buffer(kMoveBytesMax);
  // What was moved is no longer listed. A round may find all of it overwritten meanwhile; two of
  // them find what only a damaged catalog has: references without their extents.
  for (int idle_rounds = 0; idle_rounds < 2;) {
    KVSYNCFS_ASSIGN(auto live, catalog_->segment_extents(victim, 0, kMovesPerTransaction));
    if (live.empty()) return {};
    // Shared bytes (copy_file_range) come once per owner, next to each other, and are copied once
    // for each.
    MoveExtentsCommand command;
    std::vector<Bytes> runs;
    std::uint64_t used = 0;
    for (auto& [inode, extent] : live) {
      // An extent lies in one batch, so that it always fits into an empty buffer.
      const std::uint64_t at = round_up(used, kPageSize) + extent.segment_offset % kPageSize;
      if (at + extent.length > kMoveBytesMax) break;
      const MutableBytes bytes = buffer.bytes().subspan(at, extent.length);
      // Whatever keeps it from being read, the next victim may do better.
      if (auto read = store_->read(victim, extent.segment_offset, bytes); !read)
        return Error(Code::kCorrupt, read.error().detail);
      runs.push_back(bytes);
      command.moves.push_back({inode, extent, kNoSegment, 0});
      used = at + extent.length;
    }
    if (runs.empty()) break;  // an extent longer than a batch
    const UnreferencedAppends::Hold unreferenced(unreferenced_);
    KVSYNCFS_ASSIGN(const auto placed, store_->append(Stream::kCleaner, runs));
    MoveExtentsCommand moves;
    for (const Placed& p : placed) {
      MoveExtentsCommand::Move move = command.moves[p.run];
      move.from.file_offset += p.run_offset;
      move.from.segment_offset += p.run_offset;
      move.from.length = p.length;
      move.to_segment = p.segment;
      move.to_offset = p.segment_offset;
      moves.moves.push_back(std::move(move));
    }
    KVSYNCFS_ASSIGN(const CommandResult moved, commit_one(std::move(moves)));
    idle_rounds = moved.moved_bytes == 0 ? idle_rounds + 1 : 0;
  }
  return Error(Code::kCorrupt,
               fmt::format("catalog: segment {} has references that stay", victim.value));
}

Status EngineImpl::drop_segment(SegmentId victim) {
  // It is sealed, so that what is appended from now on goes elsewhere.
  if (!unreferenced_.wait_for_earlier(deadline()))
    return Error(Code::kTimeout, "cleaner: a flush does not end");
  const auto dropped = commit_one(DeleteSegmentCommand{victim});
  // Bytes that a clone shared meanwhile keep it alive; a later round moves them.
  if (!dropped) return dropped.error().code == Code::kBusy ? Status{} : dropped.error();
  dropped_segments_.push_back(victim);
  return remove_dropped();
}

/// Where that cannot be made durable now, the files wait for the next call.
Status EngineImpl::remove_dropped() {
  if (dropped_segments_.empty()) return {};
  KVSYNCFS_TRY(sync_log());
  for (; !dropped_segments_.empty(); dropped_segments_.pop_back())
    KVSYNCFS_TRY(store_->remove(dropped_segments_.back()));
  return {};
}

Status EngineImpl::drop_dead_segments() {
  std::unique_lock lock(clean_mutex_, std::defer_lock);
  if (!deadline().lock(lock)) return Error(Code::kTimeout, "cleaner: it does not end");
  for (bool more = true; more;) {
    KVSYNCFS_ASSIGN(more, clean_one(kWhollyDead));
  }
  return {};
}

}  // namespace kvsyncfs
