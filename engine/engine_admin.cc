// What an operator asks of single files.
#include <algorithm>

#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

namespace {
constexpr int kAttemptsMax = 8;  // against the cleaner
}

EngineAdmin& EngineImpl::admin() { return *admin_; }

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
