// What an operator asks of single files.
#include <algorithm>

#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

namespace {
constexpr int kAttemptsMax = 8;                     // against the cleaner
constexpr std::uint64_t kWarmBytesMax = 16u << 20;  // of one step
constexpr std::size_t kWarmExtentsMax = 4096;
constexpr std::uint64_t kStepMaxNs = 2'000'000'000;  // an unmount waits for it
}  // namespace

EngineAdmin& EngineImpl::admin() { return *admin_; }

bool EngineImpl::Admin::is_over(std::uint64_t begun_ns) const {
  return engine_.closed_ || engine_.clock_.boot_ns() - begun_ns >= kStepMaxNs;
}

Result<Entry> EngineImpl::Admin::find_file(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) return Error(Code::kIsDirectory, "/");
  const auto named = [&](Error error) {
    if (error.detail.empty()) error.detail = "/" + std::string(path);
    return error;
  };
  const auto inode = engine_.resolve(path);
  if (!inode) return named(inode.error());
  const auto attributes = engine_.attributes(*inode);
  if (!attributes) return named(attributes.error());
  if (is_directory(*attributes)) return named(Code::kIsDirectory);
  if (!is_regular(*attributes)) return named(Error(Code::kInvalid));
  return Entry{*inode, *attributes};
}

Result<LocatedExtent> EngineImpl::Admin::place_of(const Extent& extent) const {
  LocatedExtent located;
  located.file_offset = extent.file_offset;
  located.length = extent.length;
  located.segment = extent.segment;
  located.segment_offset = extent.segment_offset;
  if (extent.segment == kNoSegment) return located;
  KVSYNCFS_ASSIGN(const SegmentRecord record, engine_.catalog_->segment(extent.segment));
  located.owner = record.owner;
  located.holders = record.holders;
  located.is_sealed = record.state == SegmentState::kSealed;
  located.is_here = engine_.store_->file(extent.segment).has_value();
  const std::uint64_t first = extent.segment_offset / kPageSize;
  const std::uint64_t end = round_up(extent.segment_offset + extent.length, kPageSize) / kPageSize;
  located.pages = end - first;
  for (std::uint64_t page = first; page < end; ++page)
    if (engine_.pages_.contains({extent.segment, page})) ++located.pages_in_memory;
  return located;
}

Result<FileLocation> EngineImpl::Admin::locate(std::string_view path, std::uint64_t offset,
                                               std::size_t count_max) {
  KVSYNCFS_ASSIGN(const Entry file, find_file(path));
  FileLocation location;
  location.inode = file.inode;
  location.size_bytes = file.attributes.size;
  if (const LiveInodePtr live = engine_.live_.find(file.inode)) {
    std::shared_lock lock(live->mutex);
    location.dirty_bytes = (live->dirty.page_count() + live->flushing.page_count()) * kPageSize;
  }
  KVSYNCFS_ASSIGN(location.extents, places_of(file.inode, offset, count_max));
  if (location.extents.size() == count_max) {
    const LocatedExtent& last = location.extents.back();
    location.next = last.file_offset + last.length;
  }
  std::set<NodeId> nodes;
  for (const LocatedExtent& extent : location.extents)
    nodes.insert(extent.holders.begin(), extent.holders.end());
  location.nodes = views_of(nodes);
  return location;
}

/// A segment may be cleaned between the look at the extents and at its record: then again.
Result<std::vector<LocatedExtent>> EngineImpl::Admin::places_of(InodeId inode, std::uint64_t offset,
                                                                std::size_t count_max) const {
  for (int attempt = 1;; ++attempt) {
    KVSYNCFS_ASSIGN(const auto extents,
                    engine_.catalog_->extents(inode, offset, kFileSizeMax - offset, count_max));
    std::vector<LocatedExtent> places;
    Status status{};
    for (auto extent = extents.begin(); status && extent != extents.end(); ++extent) {
      auto place = place_of(*extent);
      if (place)
        places.push_back(std::move(*place));
      else
        status = place.error();
    }
    if (status) return places;
    if (status.error().code != Code::kNotFound || attempt == kAttemptsMax) return status.error();
  }
}

/// Pages of the extent from file offset `from` on that are not in memory yet; returns their bytes.
Result<std::uint64_t> EngineImpl::Admin::warm_extent(const LocatedExtent& extent,
                                                     std::uint64_t from, std::uint64_t length_max) {
  const std::uint64_t at = extent.segment_offset + (from - extent.file_offset);
  const std::uint64_t length = std::min(length_max, extent.file_offset + extent.length - from);
  const std::uint64_t end = round_up(at + length, kPageSize) / kPageSize;
  PooledBuffer buffer(engine_.chunks_);
  std::uint64_t pulled = 0;
  for (std::uint64_t page = at / kPageSize; page < end;) {
    if (engine_.pages_.contains({extent.segment, page})) {
      ++page;
      continue;
    }
    const auto wanted = std::min<std::uint64_t>(end - page, Readahead::kChunkPagesMax);
    const MutableBytes chunk = buffer.bytes().first(wanted * kPageSize);
    KVSYNCFS_ASSIGN(const std::size_t count,
                    engine_.misses_->load_some(extent.segment, page, chunk));
    for (std::size_t i = 0; i < count; ++i)
      engine_.pages_.insert({extent.segment, page + i}, chunk.subspan(i * kPageSize, kPageSize));
    pulled += count * kPageSize;
    page += count;
  }
  return pulled;
}

Result<WarmStep> EngineImpl::Admin::warm(std::string_view path, std::uint64_t offset) {
  KVSYNCFS_ASSIGN(const Entry file, find_file(path));
  WarmStep step;
  step.size_bytes = file.attributes.size;
  step.memory_bytes = engine_.pages_.size_bytes();
  const std::uint64_t begun_ns = engine_.clock_.boot_ns();
  const std::uint64_t end = offset + kWarmBytesMax;
  for (int attempt = 1;; ++attempt) {
    KVSYNCFS_ASSIGN(const auto places, places_of(file.inode, offset, kWarmExtentsMax));
    Status status{};
    step.next = 0;
    for (const LocatedExtent& extent : places) {
      const std::uint64_t from = std::max(offset, extent.file_offset);
      if (from >= end && step.next == 0) step.next = from;  // all before is a hole
      if (from >= end || (step.next != 0 && is_over(begun_ns))) break;
      step.next = std::min(end, extent.file_offset + extent.length);
      if (extent.segment == kNoSegment) continue;
      const auto pulled = warm_extent(extent, from, end - from);
      if (!pulled) status = pulled.error();
      if (!pulled) break;
      step.pulled_bytes += *pulled;
    }
    if (status) break;
    if (status.error().code != Code::kNotFound || attempt == kAttemptsMax) return status.error();
  }
  if (step.next >= step.size_bytes) step.next = 0;
  return step;
}

void EngineImpl::Admin::learn_names(const std::set<NodeId>& nodes) {
  const bool knows_all =
      std::all_of(nodes.begin(), nodes.end(), [&](NodeId node) { return names_.contains(node); });
  if (knows_all || !engine_.cluster_) return;
  const auto known =
      engine_.cluster_->records.nodes(engine_.clock_.boot_ns() + engine_.options_.timeout_ns / 3);
  if (!known) return;
  for (const NamedNode& named : *known) names_[named.record.id] = named.name;
}

std::vector<NodeView> EngineImpl::Admin::views_of(const std::set<NodeId>& nodes) {
  std::vector<NodeView> views;
  const auto sessions = engine_.catalog_->sessions();
  std::lock_guard lock(names_mutex_);
  learn_names(nodes);
  for (const NodeId node : nodes) {
    const auto name = names_.find(node);
    const auto session = sessions.find(node);
    views.push_back({node, name == names_.end() ? "" : name->second,
                     session != sessions.end() && session->second.lives()});
  }
  return views;
}

}  // namespace kvsyncfs
