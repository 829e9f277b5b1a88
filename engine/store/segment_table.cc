#include "engine/store/segment_table.h"

#include <algorithm>
#include <cassert>

#include "engine/format/segment_layout.h"

namespace kvsyncfs {
namespace {

/// Reads single pages in order, in larger steps while they lie close together.
class PageWindow {
 public:
  PageWindow(File& file, std::uint64_t page_count)
      : file_(file), page_count_(page_count), buffer_(kPagesMax * kPageSize) {}

  /// The page's bytes, until the next call; empty where the file ends before.
  Result<Bytes> get(std::uint64_t page) {
    if (page < begin_ || page >= end_) {
      const bool close = page >= begin_ && page < end_ + kPagesMax / 2;
      const std::uint64_t count =
          std::min<std::uint64_t>(close ? kPagesMax : 1, page_count_ - page);
      KVSYNCFS_ASSIGN(const std::size_t read,
                      file_.read_at(page * kPageSize, buffer_.bytes().first(count * kPageSize)));
      begin_ = page;
      end_ = page + read / kPageSize;
    }
    if (page >= end_) return Bytes{};
    return buffer_.bytes().subspan((page - begin_) * kPageSize, kPageSize);
  }

 private:
  static constexpr std::uint64_t kPagesMax = 32;
  File& file_;
  const std::uint64_t page_count_;
  AlignedBuffer buffer_;
  std::uint64_t begin_ = 0, end_ = 0;  // pages in the buffer
};

/// The next page in [page, end) that is a checksum page in its place, and claims that page
/// `damaged` was on stable storage if `durable_only`; `end` if there is none.
Result<std::uint64_t> find_batch(PageWindow& window, PageIdentity identity, std::uint64_t end,
                                 bool durable_only, std::uint64_t damaged) {
  for (; identity.page < end; ++identity.page) {
    KVSYNCFS_ASSIGN(const Bytes page, window.get(identity.page));
    const auto batch = decode_checksum_page(identity, page);
    if (batch && (!durable_only || batch->synced_pages > damaged)) return identity.page;
  }
  return end;
}

}  // namespace

void SegmentTable::add(std::uint32_t page, std::span<const std::uint32_t> checksums) {
  assert(page >= end() && !checksums.empty());
  batches_.push_back({page, static_cast<std::uint32_t>(checksums.size())});
  if (checksums_.size() < end()) checksums_.resize(end());
  std::copy(checksums.begin(), checksums.end(), checksums_.begin() + page + 1);
}

void SegmentTable::insert(std::uint32_t page, std::span<const std::uint32_t> checksums) {
  assert(!checksums.empty());
  const PageBatch batch{page, static_cast<std::uint32_t>(checksums.size())};
  const auto after =
      std::upper_bound(batches_.begin(), batches_.end(), page,
                       [](std::uint32_t p, const PageBatch& b) { return p < b.page; });
  if (after != batches_.end() && after->page < batch.end()) return;
  if (after != batches_.begin() && std::prev(after)->end() > page) return;
  batches_.insert(after, batch);
  if (checksums_.size() < batch.end()) checksums_.resize(batch.end());
  std::copy(checksums.begin(), checksums.end(), checksums_.begin() + page + 1);
}

const PageBatch* SegmentTable::find(std::uint64_t page) const {
  auto after = std::upper_bound(batches_.begin(), batches_.end(), page,
                                [](std::uint64_t p, const PageBatch& b) { return p < b.page; });
  if (after == batches_.begin()) return nullptr;
  const PageBatch& batch = *--after;
  return page > batch.page && page < batch.end() ? &batch : nullptr;
}

Result<SegmentWalk> walk_segment(File& file, std::uint64_t volume_tag, SegmentId id,
                                 std::uint64_t page_count, WalkEnd end) {
  SegmentWalk walk;
  PageWindow window(file, page_count);
  PageIdentity identity{volume_tag, id, 0};
  std::vector<std::uint32_t> checksums;
  while (identity.page < page_count) {
    KVSYNCFS_ASSIGN(const Bytes page, window.get(identity.page));
    auto batch = decode_checksum_page(identity, page);
    if (!batch && batch.error().code == Code::kNewerFormat) return batch.error();
    if (batch) {
      checksums.resize(batch->page_count);
      copy_checksums(page, checksums);
      walk.table.add(static_cast<std::uint32_t>(identity.page), checksums);
      walk.synced_pages = std::max(walk.synced_pages, batch->synced_pages);
      identity.page = walk.table.end();
      continue;
    }
    // The batch behind one damaged checksum page starts at most so far away.
    const std::uint64_t damaged = identity.page;
    const std::uint64_t limit = end == WalkEnd::kFile
                                    ? page_count
                                    : std::min(page_count, damaged + 1 + kPagesPerBatchMax + 1);
    ++identity.page;
    KVSYNCFS_ASSIGN(identity.page,
                    find_batch(window, identity, limit, end == WalkEnd::kTear, damaged));
    if (identity.page == limit) break;
  }
  return walk;
}

Result<std::uint64_t> find_valid_end(File& file, std::uint64_t volume_tag, SegmentId id,
                                     std::uint64_t page_count, std::uint64_t durable_pages) {
  KVSYNCFS_ASSIGN(const SegmentWalk walk,
                  walk_segment(file, volume_tag, id, page_count, WalkEnd::kTear));
  std::uint64_t valid_end = 0;
  for (const PageBatch& batch : walk.table.batches()) {
    // What was durable is damaged, not torn: it stays, and its good pages stay readable.
    if (batch.end() > std::max(walk.synced_pages, durable_pages)) {
      KVSYNCFS_ASSIGN(const auto bad,
                      find_bad_pages(file, volume_tag, id, walk.table, batch, [](auto) {}));
      if (!bad.empty()) break;
    }
    valid_end = batch.end();
  }
  return valid_end;
}

Result<std::vector<PageRange>> find_bad_pages(File& file, std::uint64_t volume_tag, SegmentId id,
                                              const SegmentTable& table, const PageBatch& batch,
                                              const std::function<void(std::uint64_t)>& progress) {
  constexpr std::uint64_t kStep = 256;  // pages
  AlignedBuffer buffer(std::min<std::uint64_t>(kStep, batch.page_count) * kPageSize);
  std::vector<PageRange> bad;
  for (std::uint64_t page = batch.page + 1; page < batch.end(); page += kStep) {
    const std::uint64_t count = std::min<std::uint64_t>(kStep, batch.end() - page);
    const MutableBytes bytes = buffer.bytes().first(count * kPageSize);
    KVSYNCFS_ASSIGN(const std::size_t read, file.read_at(page * kPageSize, bytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool whole = (i + 1) * kPageSize <= read;
      if (whole &&
          page_checksum({volume_tag, id, page + i}, bytes.subspan(i * kPageSize, kPageSize)) ==
              table.checksum(page + i))
        continue;
      const bool follows = !bad.empty() && bad.back().page + bad.back().count == page + i;
      follows ? void(++bad.back().count) : bad.push_back({page + i, 1});
    }
    progress(bytes.size());
  }
  return bad;
}

}  // namespace kvsyncfs
