// Copies of files and of this node's segments: each is read, and mended from another where it is
// bad.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

namespace {
constexpr std::size_t kBatchesMax = 16;  // of one step, at most some 64 MiB
}  // namespace

NodeId EngineImpl::Admin::self() const {
  return engine_.cluster_ ? engine_.cluster_->seams.node : NodeId{};
}

CopyKeeper EngineImpl::Admin::keeper() const {
  const auto held_length = [&engine = engine_](SegmentId segment) -> Result<std::uint64_t> {
    if (!engine.cluster_) return Error(Code::kNotFound, "a lone node can make no copy");
    return engine.cluster_->segments.held_length(segment);
  };
  return {engine_.cluster_ ? &engine_.cluster_->seams.transport : nullptr,
          engine_.clock_,
          *engine_.store_,
          self(),
          engine_.options_.timeout_ns / 3,
          held_length};
}

/// Batches that follow one another and are mended are told as one.
void EngineImpl::Admin::note_bad(BadCopy copy, std::vector<BadCopy>& bad) {
  if (!bad.empty()) {
    BadCopy& last = bad.back();
    if (last.is_mended && copy.is_mended && last.node == copy.node &&
        last.segment == copy.segment && last.page + last.count == copy.page) {
      last.count += copy.count;
      return;
    }
  }
  bad.push_back(std::move(copy));
}

PageRange EngineImpl::Admin::look_after(SegmentId segment, std::uint64_t page,
                                        const std::vector<NodeId>& asked,
                                        const std::vector<NodeId>& holders,
                                        std::vector<BadCopy>& bad, std::set<NodeId>& unchecked) {
  CopyKeeper copies = keeper();
  CheckedBatch checked = copies.check(segment, page, asked);
  const auto is_bad = [](const CheckedCopy& copy) { return copy.is_bad(); };
  if (std::any_of(checked.copies.begin(), checked.copies.end(), is_bad))
    copies.mend(segment, page, holders, checked);
  PageRange pages = checked.batch.value_or(PageRange{page, 0});
  if (!checked.batch)
    if (const auto next = copies.next_batch(segment, page + 1, holders)) pages.count = *next - page;
  for (const CheckedCopy& copy : checked.copies) {
    if (copy.is_bad())
      note_bad({copy.node,
                segment,
                pages.page,
                pages.count,
                describe(copy.status.error()),
                copy.is_mended,
                {}},
               bad);
    else if (!copy.status)
      unchecked.insert(copy.node);
  }
  return pages;
}

Result<std::vector<std::string>> EngineImpl::Admin::paths_at(SegmentId segment,
                                                             PageRange pages) const {
  const std::uint64_t begin = pages.page * kPageSize;
  const std::uint64_t end =
      pages.count == 0 ? ~std::uint64_t{0} : (pages.page + pages.count) * kPageSize;
  KVSYNCFS_ASSIGN(const auto extents,
                  engine_.catalog_->segment_extents(segment, 0, ~std::size_t{0}));
  std::unordered_set<InodeId> users;
  for (const auto& [inode, extent] : extents)
    if (extent.segment_offset < end && extent.segment_offset + extent.length > begin)
      users.insert(inode);
  std::vector<std::string> paths;
  if (users.empty()) return paths;
  KVSYNCFS_ASSIGN(const auto found, engine_.catalog_->paths(users));
  for (const auto& [inode, path] : found) paths.push_back(path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<bool> EngineImpl::Admin::is_gone(const BadCopy& copy) const {
  const auto record = engine_.catalog_->segment(copy.segment);
  if (!record && record.error().code == Code::kNotFound) return true;
  if (!record) return record.error();
  const auto& holders = record->holders;
  return !holders.empty() && std::find(holders.begin(), holders.end(), copy.node) == holders.end();
}

Status EngineImpl::Admin::drop_gone(std::vector<BadCopy>& bad) const {
  std::vector<BadCopy> left;
  for (BadCopy& copy : bad) {
    if (!copy.is_mended) {
      KVSYNCFS_ASSIGN(const bool was_removed, is_gone(copy));
      if (was_removed) continue;
    }
    left.push_back(std::move(copy));
  }
  bad = std::move(left);
  return {};
}

Status EngineImpl::Admin::name_files(std::vector<BadCopy>& bad) const {
  KVSYNCFS_TRY(drop_gone(bad));
  for (BadCopy& copy : bad) {
    if (copy.is_mended) continue;
    KVSYNCFS_ASSIGN(copy.paths, paths_at(copy.segment, {copy.page, copy.count}));
  }
  return {};
}

Result<VerifyStep> EngineImpl::Admin::verify(std::string_view path, std::uint64_t offset) {
  KVSYNCFS_ASSIGN(const Entry file, find_file(path));
  VerifyStep step;
  step.size_bytes = file.attributes.size;
  KVSYNCFS_ASSIGN(const auto places, places_of(file.inode, offset, kBatchesMax));
  std::set<NodeId> unchecked, nodes;
  SegmentId last;  // extents that lie in one batch mostly follow each other
  PageRange batch;
  const std::uint64_t begun_ns = engine_.clock_.boot_ns();
  for (const LocatedExtent& place : places) {
    if (last != kNoSegment && is_over(begun_ns)) {
      step.next = place.file_offset;
      break;
    }
    const std::uint64_t page = place.segment_offset / kPageSize;
    const bool is_seen =
        place.segment == last && page >= batch.page && page - batch.page < batch.count;
    if (place.segment == kNoSegment || is_seen) continue;
    const auto holders = place.holders.empty() ? std::vector<NodeId>{self()} : place.holders;
    nodes.insert(holders.begin(), holders.end());
    last = place.segment;
    batch = look_after(place.segment, page, holders, holders, step.bad, unchecked);
  }
  KVSYNCFS_TRY(name_files(step.bad));
  if (step.next == 0 && places.size() == kBatchesMax)
    step.next = places.back().file_offset + places.back().length;
  if (step.next >= step.size_bytes) step.next = 0;
  step.unchecked.assign(unchecked.begin(), unchecked.end());
  step.nodes = views_of(nodes);
  return step;
}

Result<ScrubStep> EngineImpl::Admin::scrub(ScrubPlace from) {
  KVSYNCFS_ASSIGN(ScrubStep step, scrub_some(from, kBatchesMax, ~std::uint64_t{0}));
  KVSYNCFS_TRY(name_files(step.bad));
  note_asked(from, step);
  return step;
}

/// Of a segment that is being written nothing is read: it is sealed soon.
Result<ScrubStep> EngineImpl::Admin::scrub_some(ScrubPlace from, std::size_t batches_max,
                                                std::uint64_t bytes_max) {
  KVSYNCFS_ASSIGN(const auto segments, engine_.catalog_->segments());
  ScrubStep step;
  std::set<NodeId> unchecked, nodes;
  std::size_t batches = 0;
  const std::uint64_t begun_ns = engine_.clock_.boot_ns();
  for (const auto& [id, record] : segments) {
    const bool is_mine = !engine_.cluster_ || engine_.is_holder(id);
    if (!is_mine || record.state != SegmentState::kSealed) continue;
    const auto holders = record.holders.empty() ? std::vector<NodeId>{self()} : record.holders;
    std::uint64_t page = id == from.segment ? from.page : 0;
    const std::uint64_t end = record.length / kPageSize;
    if (id < from.segment) page = end;
    for (; page < end && batches < batches_max && step.checked_bytes < bytes_max; ++batches) {
      if (batches > 0 && is_over(begun_ns)) break;
      const std::size_t known = step.bad.size();
      const PageRange seen = look_after(id, page, {self()}, holders, step.bad, unchecked);
      if (step.bad.size() > known) nodes.insert(self());
      const std::uint64_t next = seen.count > 0 ? seen.page + seen.count : end;
      step.checked_bytes += (next - page) * kPageSize;
      page = next;
    }
    step.total_bytes += end * kPageSize;
    step.done_bytes += std::min(page, end) * kPageSize;
    if (page < end && step.next.segment == kNoSegment) step.next = {id, page};
  }
  KVSYNCFS_TRY(drop_gone(step.bad));
  step.nodes = views_of(nodes);
  return step;
}

}  // namespace kvsyncfs
