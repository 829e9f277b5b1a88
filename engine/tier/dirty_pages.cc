#include "engine/tier/dirty_pages.h"

#include <algorithm>
#include <cstring>

namespace kvsyncfs {

void DirtyPages::add_range(Page& page, std::uint16_t begin, std::uint16_t end) {
  auto& r = page.ranges;
  auto first = r.begin();
  while (first != r.end() && first->end < begin) ++first;
  auto last = first;
  while (last != r.end() && last->begin <= end) {
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
    ++last;
  }
  r.insert(r.erase(first, last), Range{begin, end});
}

void DirtyPages::remove_range(Page& page, std::uint16_t begin, std::uint16_t end) {
  boost::container::small_vector<Range, 1> left;
  for (const Range& range : page.ranges) {
    if (range.begin < begin) left.push_back({range.begin, std::min(range.end, begin)});
    if (range.end > end) left.push_back({std::max(range.begin, end), range.end});
  }
  page.ranges = std::move(left);
}

DirtyPages::Pages::iterator DirtyPages::erase(Pages::iterator it) {
  pool_->give_back(it->second.frame);
  if (!it->second.logged) --unlogged_pages_;
  return pages_.erase(it);
}

void DirtyPages::write(std::uint64_t offset, Bytes bytes) {
  auto hint = pages_.lower_bound(offset / kPageSize);
  while (!bytes.empty()) {
    const std::uint64_t number = offset / kPageSize;
    const std::size_t begin = offset % kPageSize;
    const std::size_t size = std::min(bytes.size(), kPageSize - begin);
    while (hint != pages_.end() && hint->first < number) ++hint;
    if (hint == pages_.end() || hint->first != number) {
      hint = pages_.emplace_hint(hint, number, Page{});
      hint->second.frame = pool_->take();
      ++unlogged_pages_;
    } else if (hint->second.logged) {
      hint->second.logged = false;
      ++unlogged_pages_;
    }
    std::memcpy(hint->second.frame + begin, bytes.data(), size);
    add_range(hint->second, static_cast<std::uint16_t>(begin),
              static_cast<std::uint16_t>(begin + size));
    bytes = bytes.subspan(size);
    offset += size;
  }
}

std::size_t DirtyPages::overlay(std::uint64_t offset, MutableBytes out) const {
  const std::uint64_t end = offset + out.size();
  std::size_t touched = 0;
  for (auto it = pages_.lower_bound(offset / kPageSize); it != pages_.end(); ++it) {
    const std::uint64_t base = it->first * kPageSize;
    if (base >= end) break;
    ++touched;
    for (const Range& range : it->second.ranges) {
      const std::uint64_t from = std::max(offset, base + range.begin);
      const std::uint64_t to = std::min(end, base + range.end);
      if (from < to)
        std::memcpy(out.data() + (from - offset), it->second.frame + (from - base), to - from);
    }
  }
  return touched;
}

bool DirtyPages::covers(std::uint64_t offset, std::uint64_t length) const {
  const auto range = next_range(offset);
  return range && range->begin <= offset && range->end >= offset + length;
}

void DirtyPages::drop(std::uint64_t begin, std::uint64_t end) {
  auto it = pages_.lower_bound(begin / kPageSize);
  while (it != pages_.end()) {
    const std::uint64_t base = it->first * kPageSize;
    if (base >= end) break;
    const std::uint64_t from = begin > base ? begin - base : 0;
    const std::uint64_t to = std::min<std::uint64_t>(end - base, kPageSize);
    remove_range(it->second, static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to));
    it = it->second.ranges.empty() ? erase(it) : std::next(it);
  }
}

void DirtyPages::clear() {
  // From the end, so that the pool hands the frames out again in the order of the file.
  while (!pages_.empty()) erase(std::prev(pages_.end()));
}

void DirtyPages::swap(DirtyPages& other) noexcept {
  std::swap(pool_, other.pool_);
  pages_.swap(other.pages_);
  std::swap(unlogged_pages_, other.unlogged_pages_);
}

void DirtyPages::absorb_older(DirtyPages& older) {
  DirtyPages newer(*pool_);
  newer.swap(*this);
  swap(older);
  newer.for_each([this](std::uint64_t offset, Bytes piece) { write(offset, piece); });
}

std::uint64_t DirtyPages::end() const {
  if (pages_.empty()) return 0;
  const auto& [number, page] = *pages_.rbegin();
  return number * kPageSize + page.ranges.back().end;
}

std::optional<ByteRange> DirtyPages::next_range(std::uint64_t offset) const {
  std::optional<ByteRange> found;
  for (auto it = pages_.lower_bound(offset / kPageSize); it != pages_.end(); ++it) {
    const std::uint64_t base = it->first * kPageSize;
    for (const Range& range : it->second.ranges) {
      if (base + range.end <= offset) continue;
      if (found && found->end != base + range.begin) return found;
      if (!found) found = ByteRange{base + range.begin, 0};
      found->end = base + range.end;
    }
    if (found && found->end != base + kPageSize) return found;
  }
  return found;
}

void DirtyPages::for_each(const Visitor& visit, bool unlogged_only) const {
  for (const auto& [number, page] : pages_) {
    if (unlogged_only && page.logged) continue;
    for (const Range& range : page.ranges)
      visit(number * kPageSize + range.begin,
            Bytes(page.frame + range.begin, static_cast<std::size_t>(range.end - range.begin)));
  }
}

void DirtyPages::mark_logged() {
  for (auto& [number, page] : pages_) page.logged = true;
  unlogged_pages_ = 0;
}

}  // namespace kvsyncfs
