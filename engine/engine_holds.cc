// What keeps the bytes of saved catalogs: who takes a hold, what it costs, and how it ends.
// ARCHITECTURE.md, "A saved catalog holds its segments".
#include <algorithm>
#include <utility>

#include "engine/engine_admin_impl.h"
#include "engine/format/codec.h"

namespace kvsyncfs {

namespace {

constexpr std::uint64_t kHoldSecondsMax = 10ull * 366 * 86'400;

/// Bytes that a segment takes as long as it is there; of one that is open, what is known.
std::uint64_t bytes_of(const SegmentRecord& record) {
  return std::max(record.length, record.live_bytes);
}

Error lone() {
  return {Code::kUnsupported, "the catalog of a lone node cannot be saved while it is mounted"};
}

}  // namespace

/// A segment that is kept takes its room whatever becomes of its bytes.
Status EngineImpl::count_held_bytes() {
  const Holds holds = catalog_->holds();
  KVSYNCFS_ASSIGN(const auto segments, catalog_->segments());
  std::uint64_t here = 0, kept_dead = 0;
  for (const auto& [id, record] : segments) {
    const std::uint64_t bytes = is_kept(holds, id) ? bytes_of(record) : record.live_bytes;
    kept_dead += bytes - record.live_bytes;
    if (is_held(record)) here += bytes;
  }
  cluster_->held_live_bytes = here;
  cluster_->kept_dead_bytes = kept_dead;
  return {};
}

/// All nodes look, and the first one that says so ends it.
Status EngineImpl::release_expired_holds() {
  if (!serving_) return {};
  for (const auto& [name, hold] : catalog_->holds()) {
    if (hold.expires > clock_.now()) continue;
    const auto released = commit_one(ReleaseHoldCommand{name, hold.position});
    if (!released && released.error().code != Code::kNotFound) return released.error();
  }
  return {};
}

Result<SavedCatalog> EngineImpl::Admin::save_catalog(std::string_view name, std::uint64_t seconds) {
  if (!engine_.cluster_) return lone();
  if (seconds == 0 || seconds > kHoldSecondsMax)
    return Error(Code::kInvalid, "no time for which the segments are kept");
  ClusterParts& cluster = *engine_.cluster_;
  std::lock_guard lock(save_mutex_);
  KVSYNCFS_TRY(engine_.sync_all());
  HoldSegmentsCommand hold{std::string(name), engine_.clock_.now(), {}};
  hold.expires = hold.time;
  hold.expires.seconds += static_cast<std::int64_t>(seconds);
  SavedCatalog saved;
  saved.volume = cluster.seams.volume;
  saved.uuid = engine_.superblock_.uuid;
  saved.generation = cluster.seams.generation;
  saved.taken = hold.time;
  cluster.snapshots.expect(hold.name);
  const auto held = engine_.commit_one(std::move(hold));
  const auto taken = cluster.snapshots.expected();
  if (!held) return Error(held.error().code, "hold " + std::string(name));
  if (!taken) return taken.error();
  saved.snapshot = taken->id;
  saved.position = taken->position;
  saved.estimated_records = taken->estimated_records;
  return saved;
}

Result<SavedPiece> EngineImpl::Admin::saved_records(std::uint64_t snapshot,
                                                    std::string_view after) {
  if (!engine_.cluster_) return lone();
  SavedPiece piece;
  KVSYNCFS_ASSIGN(piece.records, engine_.cluster_->snapshots.records(snapshot, after));
  for (Reader in(piece.records); in.left() > 0;) {
    const std::uint32_t key_size = in.u32(), value_size = in.u32();
    piece.last_key = std::string(in.raw(key_size));
    in.raw(value_size);
    ++piece.count;
  }
  return piece;
}

Status EngineImpl::Admin::release_hold(std::string_view name) {
  if (!engine_.cluster_) return lone();
  const Holds holds = engine_.catalog_->holds();
  const auto hold = holds.find(std::string(name));
  if (hold == holds.end()) return Error(Code::kNotFound, "hold " + std::string(name));
  KVSYNCFS_TRY(engine_.commit_one(ReleaseHoldCommand{hold->first, hold->second.position}));
  return {};
}

Result<std::vector<HoldView>> EngineImpl::Admin::holds() {
  std::vector<HoldView> views;
  KVSYNCFS_ASSIGN(const auto segments, engine_.catalog_->segments());
  for (const auto& [name, hold] : engine_.catalog_->holds()) {
    HoldView view{name, hold.position, hold.taken, hold.expires};
    for (const auto& [id, record] : segments) {
      if (!hold.keeps(id)) continue;
      ++view.segments;
      view.kept_bytes += bytes_of(record) - record.live_bytes;
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace kvsyncfs
