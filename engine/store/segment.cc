#include "engine/store/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/format/segment_layout.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kBouncePages = 64;

bool is_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kPageSize == 0; }

}  // namespace

Status Segment::load(Disk& disk, OpenMode mode) {
  if (ready_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(load_mutex_);
  if (ready_.load(std::memory_order_relaxed)) return {};
  KVSYNCFS_ASSIGN(auto file, disk.open(path_, mode, true));
  KVSYNCFS_ASSIGN(const std::uint64_t size, file->size());
  KVSYNCFS_ASSIGN(auto walk,
                  walk_segment(*file, volume_tag_, id_, size / kPageSize, WalkEnd::kFile));
  table_ = std::move(walk.table);
  file_ = std::move(file);
  ready_.store(true, std::memory_order_release);
  return {};
}

void Segment::start(std::unique_ptr<File> file, std::uint32_t page_count_max) {
  assert(!ready_.load());
  table_.prepare(page_count_max);
  file_ = std::move(file);
  written_.store(true, std::memory_order_relaxed);
  ready_.store(true, std::memory_order_release);
}

void Segment::add_batch(std::uint32_t page, std::span<const std::uint32_t> checksums) {
  std::unique_lock lock(table_mutex_);
  table_.add(page, checksums);
}

void Segment::insert_batch(std::uint32_t page, std::span<const std::uint32_t> checksums) {
  std::unique_lock lock(table_mutex_);
  table_.insert(page, checksums);
}

std::uint64_t Segment::batch_end(std::uint64_t length) const {
  if (length == 0) return 0;
  std::shared_lock lock(table_mutex_);
  const PageBatch* batch = table_.find((length - 1) / kPageSize);
  // One that is damaged is for its readers to tell.
  return batch != nullptr ? batch->end() * std::uint64_t{kPageSize} : round_up(length, kPageSize);
}

std::optional<PageRange> Segment::find_batch(std::uint64_t page) const {
  std::shared_lock lock(table_mutex_);
  const PageBatch* batch = table_.find(page);
  if (batch == nullptr) batch = table_.find(page + 1);  // of its checksum page
  if (batch == nullptr || batch->page > page) return std::nullopt;
  return PageRange{batch->page, batch->page_count + std::uint64_t{1}};
}

Result<PageRange> Segment::batch_of(std::uint64_t page) {
  if (const auto batch = find_batch(page)) return *batch;
  return bad_page(page, "in no valid batch");
}

std::optional<std::uint64_t> Segment::next_batch(std::uint64_t page) const {
  std::shared_lock lock(table_mutex_);
  const auto batches = table_.batches();
  const auto next = std::lower_bound(
      batches.begin(), batches.end(), page,
      [](const PageBatch& batch, std::uint64_t from) { return batch.page < from; });
  if (next == batches.end()) return std::nullopt;
  return next->page;
}

bool Segment::has_batch(std::uint64_t page, std::span<const std::uint32_t> checksums) const {
  std::shared_lock lock(table_mutex_);
  const PageBatch* batch = table_.find(page + 1);
  if (batch == nullptr || batch->page != page || batch->page_count != checksums.size())
    return false;
  for (std::size_t i = 0; i < checksums.size(); ++i)
    if (table_.checksum(page + 1 + i) != checksums[i]) return false;
  return true;
}

std::uint64_t Segment::end_pages() const {
  std::shared_lock lock(table_mutex_);
  return table_.end();
}

Error Segment::bad_page(std::uint64_t page, const char* what, std::uint64_t count) {
  counts_.corrupt_pages.fetch_add(count, std::memory_order_relaxed);
  return {Code::kCorrupt, fmt::format("segment {} page {}: {}", id_.value, page, what)};
}

Result<std::uint64_t> Segment::pages_in_batch_from(std::uint64_t page) {
  {
    std::shared_lock lock(table_mutex_);
    if (const PageBatch* batch = table_.find(page)) return batch->end() - page;
  }
  return bad_page(page, "in no valid batch");
}

/// Checksum pages of the batches that follow one another without a gap, up to page `*end`, which
/// becomes the end of what they hold. Empty: no batch has `page`.
std::optional<std::vector<std::uint64_t>> Segment::heads_from(std::uint64_t page,
                                                              std::uint64_t* end) const {
  std::vector<std::uint64_t> heads;
  std::shared_lock lock(table_mutex_);
  const PageBatch* batch = table_.find(page);
  if (batch == nullptr) return std::nullopt;
  const PageBatch* const last = &table_.batches().back();
  for (; batch->end() < *end && batch != last && batch[1].page == batch->end(); ++batch)
    heads.push_back(batch->end());
  *end = std::min<std::uint64_t>(*end, batch->end());
  if (!heads.empty() && heads.back() + 1 == *end) --*end;  // of no use without its pages
  return heads;
}

Result<std::size_t> Segment::load_pages(std::uint64_t page, MutableBytes out) {
  std::uint64_t end = page + out.size() / kPageSize;
  const auto heads = heads_from(page, &end);
  if (!heads) return bad_page(page, "in no valid batch");
  out = out.first((end - page) * kPageSize);
  KVSYNCFS_ASSIGN(const std::size_t size, file_->read_at(page * kPageSize, out));
  auto head = heads->begin();
  for (std::uint64_t at = page; at < end; ++at) {
    const std::uint64_t offset = (at - page) * kPageSize;
    const bool is_whole = offset + kPageSize <= size, is_head = head != heads->end() && *head == at;
    if (is_head) ++head;
    const Bytes bytes = out.subspan(offset, kPageSize);
    const PageIdentity identity{volume_tag_, id_, at};
    if (is_whole && (is_head ? decode_checksum_page(identity, bytes).has_value()
                             : page_checksum(identity, bytes) == table_.checksum(at)))
      continue;
    // What was not asked for is told when it is.
    if (at > page) return at - page;
    return bad_page(at, is_whole ? "bad checksum" : "the file ends before it");
  }
  return end - page;
}

Result<AlignedBuffer> Segment::read_batch(std::uint64_t page) {
  std::size_t count = 0;
  {
    std::shared_lock lock(table_mutex_);
    const PageBatch* batch = table_.find(page + 1);
    if (batch == nullptr || batch->page != page)
      return Error(Code::kNotFound, fmt::format("segment {} page {}: no batch", id_.value, page));
    count = batch->page_count;
  }
  AlignedBuffer bytes((count + 1) * kPageSize);
  KVSYNCFS_TRY(read_pages(page + 1, bytes.bytes().subspan(kPageSize)));
  const MutableBytes head = bytes.bytes().first(kPageSize);
  KVSYNCFS_ASSIGN(const std::size_t size, file_->read_at(page * kPageSize, head));
  if (size != kPageSize || !decode_checksum_page({volume_tag_, id_, page}, head))
    return bad_page(page, "bad checksum page");
  return bytes;
}

Status Segment::read(std::uint64_t offset, MutableBytes out) {
  if (out.empty()) return {};
  const std::uint64_t first = offset / kPageSize;
  const std::uint64_t end = (offset + out.size() - 1) / kPageSize + 1;
  KVSYNCFS_ASSIGN(const std::uint64_t in_batch, pages_in_batch_from(first));
  if (end - first > in_batch) return bad_page(first + in_batch, "not a page of the same batch");
  if (offset % kPageSize == 0 && out.size() % kPageSize == 0 && is_aligned(out.data()))
    return read_pages(first, out);

  thread_local AlignedBuffer bounce(kBouncePages * kPageSize);
  std::size_t skip = offset % kPageSize;
  for (std::uint64_t page = first; page < end;) {
    const auto count = std::min<std::uint64_t>(kBouncePages, end - page);
    const MutableBytes pages = bounce.bytes().first(count * kPageSize);
    KVSYNCFS_TRY(read_pages(page, pages));
    const std::size_t size = std::min(out.size(), pages.size() - skip);
    std::memcpy(out.data(), pages.data() + skip, size);
    out = out.subspan(size);
    skip = 0;
    page += count;
  }
  return {};
}

Status Segment::read_pages(std::uint64_t page, MutableBytes out) {
  KVSYNCFS_ASSIGN(const std::size_t size, file_->read_at(page * kPageSize, out));
  const std::uint64_t count = out.size() / kPageSize;
  std::uint64_t bad_count = 0, first_bad = 0;
  // Without the lock: the caller saw the batch under it, and a batch's checksums stay where they
  // are.
  const std::uint64_t whole = size / kPageSize;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes bytes = out.subspan(i * kPageSize, kPageSize);
    if (i < whole &&
        page_checksum({volume_tag_, id_, page + i}, bytes) == table_.checksum(page + i))
      continue;
    if (bad_count++ == 0) first_bad = page + i;
  }
  if (bad_count == 0) return {};
  return bad_page(first_bad, first_bad - page >= whole ? "the file ends before it" : "bad checksum",
                  bad_count);
}

}  // namespace kvsyncfs
