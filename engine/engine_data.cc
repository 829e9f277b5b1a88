// Bytes: read and write. A read is the segment bytes of the extents under what the write buffer
// holds.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/engine_impl.h"
#include "engine/env/caller.h"
#include "engine/format/segment_layout.h"

namespace kvsyncfs {

namespace {

/// Reads this large go past the arena: the kernel keeps their pages, and one such read would push
/// out many small hot ones.
constexpr std::uint64_t kDirectReadMin = 128u << 10;
/// A segment that was cleaned between the look at the extents and the read: look again.
constexpr int kReadAttemptsMax = 8;
constexpr std::uint32_t kSetUserId = 04000, kSetGroupId = 02000, kGroupExecute = 00010;

/// Is there anything that a writer without privilege takes away, whatever group it is in?
Result<bool> has_privileges(const Catalog& catalog, InodeId id, const Inode& inode) {
  if ((inode.mode & kSetUserId) != 0) return true;
  if ((inode.mode & kSetGroupId) != 0 && (inode.mode & kGroupExecute) != 0) return true;
  if (inode.xattr_count == 0) return false;
  const auto capability = catalog.xattr(id, "security.capability");
  return capability || capability.error().code != Code::kNoData;
}

}  // namespace

Status EngineImpl::load_size(LiveInode& live) {
  if (live.gone) return Code::kNotFound;
  if (live.loaded && !live.changed_elsewhere.exchange(false)) return {};
  const std::uint64_t end = live.on_way().end;
  KVSYNCFS_ASSIGN(const Inode inode, catalog_->inode(live.id));
  if (is_directory(inode)) return Code::kIsDirectory;
  if (!is_regular(inode)) return Code::kInvalid;
  // Replayed bytes may reach beyond the size only if a cut followed them, and that emptied them.
  live.size = std::max(inode.size, end);
  live.loaded = true;
  return {};
}

Result<std::uint64_t> EngineImpl::size_to_read(InodeId inode, const LiveInode* live) {
  if (live && live->loaded && !live->changed_elsewhere) {
    if (live->gone) return Code::kNotFound;
    return live->size;
  }
  const std::uint64_t end = live ? live->on_way().end : 0;
  KVSYNCFS_ASSIGN(const Inode record, catalog_->inode(inode));
  if (is_directory(record)) return Code::kIsDirectory;
  return std::max(record.size, end);
}

Result<std::size_t> EngineImpl::read(InodeId inode, std::uint64_t offset, MutableBytes out) {
  LiveInodePtr live = live_.find(inode);
  std::shared_lock<std::shared_mutex> lock;
  if (live) lock = std::shared_lock(live->mutex);
  KVSYNCFS_ASSIGN(const std::uint64_t size, size_to_read(inode, live.get()));
  if (offset >= size) return std::size_t{0};
  out = out.first(std::min<std::uint64_t>(out.size(), size - offset));

  const bool all_dirty = live && live->dirty.covers(offset, out.size());
  if (!all_dirty) {
    const bool has_flushing = live && live->on_way().has_flushing;
    KVSYNCFS_TRY(read_extents(inode, offset, out));
    if (has_flushing) live->flushing.overlay(offset, out);
  }
  if (live) {
    const std::size_t pages = live->dirty.overlay(offset, out);
    counts_.buffer_hit_pages.fetch_add(all_dirty ? pages : 0, std::memory_order_relaxed);
    if (all_dirty) counts_.page_hits.fetch_add(pages, std::memory_order_relaxed);
  }
  counts_.read_bytes.fetch_add(out.size(), std::memory_order_relaxed);
  return out.size();
}

Result<std::vector<Extent>> EngineImpl::extents_of(InodeId inode, std::uint64_t offset,
                                                   std::uint64_t length) {
  const std::uint64_t end = offset + length;
  std::vector<Extent> found;
  for (std::uint64_t at = offset; at < end;
       at = (at / ExtentCache::kWindowSize + 1) * ExtentCache::kWindowSize) {
    KVSYNCFS_ASSIGN(const auto window,
                    extents_.window(inode, at, [&](std::uint64_t from, std::uint64_t size) {
                      return catalog_->extents(inode, from, size, ~std::size_t{0});
                    }));
    auto it = std::upper_bound(window->begin(), window->end(), offset,
                               [](std::uint64_t o, const Extent& e) { return o < e.file_end(); });
    for (; it != window->end() && it->file_offset < end; ++it) found.push_back(*it);
  }
  return found;
}

Status EngineImpl::read_extents(InodeId inode, std::uint64_t offset, MutableBytes out) {
  const std::uint64_t end = offset + out.size();
  for (int attempt = 1;; ++attempt) {
    KVSYNCFS_ASSIGN(const auto extents, extents_of(inode, offset, out.size()));
    Status status{};
    std::uint64_t at = offset;
    for (const Extent& e : extents) {
      const std::uint64_t from = std::max(at, e.file_offset), to = std::min(end, e.file_end());
      std::memset(out.data() + (at - offset), 0, from - at);
      status = read_extent(e, from, out.subspan(from - offset, to - from));
      if (!status) break;
      at = to;
    }
    if (status) {
      std::memset(out.data() + (at - offset), 0, end - at);
      return {};
    }
    if (status.error().code != Code::kNotFound || attempt == kReadAttemptsMax) {
      counts_.errors.fetch_add(1, std::memory_order_relaxed);
      report_damage(inode, status.error());
      if (status.error().code == Code::kNotFound) return Error(Code::kIo, status.error().detail);
      return status;
    }
    extents_.forget(inode, offset, out.size());
  }
}

/// Once for each place, however often it is read.
void EngineImpl::report_damage(InodeId inode, const Error& error) {
  constexpr std::size_t kReportsMax = 1000;
  {
    std::lock_guard lock(failure_mutex_);
    if (reported_damage_.size() == kReportsMax) return;
    if (!reported_damage_.insert(describe(error)).second) return;
  }
  options_.warn(fmt::format("inode {} cannot be read in part: {}", inode.value, describe(error)));
}

/// File bytes of `extent` from file offset `offset`.
Status EngineImpl::read_extent(const Extent& extent, std::uint64_t offset, MutableBytes out) {
  if (extent.segment == kNoSegment) {
    std::memset(out.data(), 0, out.size());
    return {};
  }
  std::uint64_t at = extent.segment_offset + (offset - extent.file_offset);
  if (out.size() >= kDirectReadMin) {
    counts_.page_misses.fetch_add((at % kPageSize + out.size() + kPageSize - 1) / kPageSize,
                                  std::memory_order_relaxed);
    return misses_->load(extent.segment, at, out);
  }
  while (!out.empty()) {
    const std::size_t in_page = at % kPageSize;
    const std::size_t size = std::min<std::size_t>(out.size(), kPageSize - in_page);
    const auto pages_needed =
        static_cast<std::uint32_t>((in_page + out.size() + kPageSize - 1) / kPageSize);
    KVSYNCFS_TRY(read_page(extent.segment, at / kPageSize, in_page, out.first(size), pages_needed));
    out = out.subspan(size);
    at += size;
  }
  return {};
}

/// One page's bytes, from the arena or by a miss that brings as many pages as the policy says.
Status EngineImpl::read_page(SegmentId segment, std::uint64_t page, std::size_t offset,
                             MutableBytes out, std::uint32_t pages_needed) {
  if (pages_.read({segment, page}, offset, out)) {
    counts_.page_hits.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  counts_.page_misses.fetch_add(1, std::memory_order_relaxed);
  const bool arena_has_room = pages_.used_bytes() < pages_.size_bytes() / 4 * 3;
  const std::uint32_t wanted = readahead_.chunk_pages(segment, page, pages_needed, arena_has_room);
  PooledBuffer buffer(chunks_);
  const MutableBytes chunk = buffer.bytes().first(wanted * kPageSize);
  KVSYNCFS_ASSIGN(const std::size_t count, misses_->load_some(segment, page, chunk));
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes bytes = chunk.subspan(i * kPageSize, kPageSize);
    const PageIdentity identity{superblock_.volume_tag(), segment, page + i};
    // Nobody reads checksum pages, which lie between those of small files.
    if (i == 0 || !decode_checksum_page(identity, bytes)) pages_.insert({segment, page + i}, bytes);
  }
  std::memcpy(out.data(), chunk.data() + offset, out.size());
  return {};
}

Result<bool> EngineImpl::clear_privileges(InodeId inode, const GroupTest& is_member) {
  KVSYNCFS_ASSIGN(const Inode record, catalog_->inode(inode));
  AttributeChange change;
  change.kill_privileges = true;
  change.kill_setgid = (record.mode & kSetGroupId) != 0 && !is_member(record.gid);
  if (!change.kill_setgid) {
    KVSYNCFS_ASSIGN(const bool has_some, has_privileges(*catalog_, inode, record));
    if (!has_some) return false;
  }
  KVSYNCFS_TRY(set_attributes(inode, change));
  return true;
}

Status EngineImpl::write(InodeId inode, std::uint64_t offset, Bytes bytes, WriteOptions options) {
  KVSYNCFS_ASSIGN(const auto begun, begin_change());
  if (offset > kFileSizeMax || bytes.size() > kFileSizeMax - offset) return Code::kFileTooBig;
  if (cluster_ && options.append) return append_now(inode, bytes, begun, options.handle);
  // Two pages more: where the write begins and ends inside pages.
  const std::uint64_t space = round_up(bytes.size(), kPageSize) + 2 * kPageSize;
  KVSYNCFS_TRY(make_room_in_buffer(space));
  KVSYNCFS_TRY(reserve_space(space, bytes.size(), {inode, offset, bytes.size(), options.append}));
  LiveInodePtr live = live_.get_or_add(inode);
  std::unique_lock lock(live->mutex);
  Status status = load_size(*live);
  // Who comes late may have lost the file to others.
  if (begun && session() != *begun)
    status = Error(Code::kTimeout, "this node's session ended meanwhile");
  else if (begun && status)
    status = cluster_->lost_handles.check(inode, options.handle);
  if (status && options.append) {
    offset = live->size;
    if (bytes.size() > kFileSizeMax - offset) status = Code::kFileTooBig;
  }
  if (status && !Caller::may_change()) status = Error(Code::kTimeout, "its caller has gone");
  if (status) {
    live->reserved_bytes += space;
    if (live->clean()) live->overtaken = false;
    live->dirty.write(offset, bytes);
    live->size = std::max(live->size, offset + bytes.size());
    live->mtime = clock_.now();
    note_dirty(live);
    settle(*live);
    counts_.written_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  } else {
    store_->unreserve(space);
  }
  lock.unlock();
  if (!status) live_.drop_if_idle(inode);
  return status;
}

void EngineImpl::overlay_attributes(LiveInode& live, const LiveInode::OnWay& on_way,
                                    Inode& attributes) {
  if (live.changed_elsewhere)
    attributes.size = std::max(attributes.size, on_way.end);
  else if (live.loaded)
    attributes.size = live.size;
  attributes.allocated_bytes += on_way.pages * kPageSize;
  if (on_way.mtime) {
    attributes.mtime = *on_way.mtime;
    attributes.ctime = std::max(*on_way.mtime, attributes.ctime);
  }
}

Result<Inode> EngineImpl::attributes(InodeId inode) {
  KVSYNCFS_TRY(may_answer());
  return attributes_of_open(inode);
}

Result<Inode> EngineImpl::attributes_of_open(InodeId inode) {
  Result<Inode> found = Code::kNotFound;
  if (LiveInodePtr live = live_.find(inode)) {
    // A flush hands over size and times under this lock: they are seen here or in the catalog,
    // never in neither.
    std::shared_lock lock(live->mutex);
    const LiveInode::OnWay on_way = live->on_way();
    found = catalog_->inode(inode);
    if (found) overlay_attributes(*live, on_way, *found);
  } else {
    found = catalog_->inode(inode);
  }
  if (!found) return found;
  std::lock_guard lock(atime_mutex_);
  if (auto it = atimes_.find(inode); it != atimes_.end())
    found->atime = std::max(found->atime, it->second);
  return found;
}

}  // namespace kvsyncfs
