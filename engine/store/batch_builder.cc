#include "engine/store/batch_builder.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace kvsyncfs {

void BatchBuilder::build(RunCursor& cursor, SegmentId segment, std::uint64_t page,
                         std::uint64_t synced_pages, std::uint32_t page_count_max,
                         std::vector<Placed>& placed) {
  assert(!cursor.done() && page_count_max > 0 && page_count_max <= kPagesPerBatchMax);
  staged_pages_ = 0;
  data_bytes_ = 0;
  checksums_.clear();
  pieces_.assign(1, checksum_page_.bytes());
  while (!cursor.done() && checksums_.size() < page_count_max) {
    const std::uint64_t number = page + 1 + checksums_.size();
    const Bytes data = next_page(cursor, segment, number * kPageSize, placed);
    checksums_.push_back(page_checksum({volume_tag_, segment, number}, data));
    add_piece(data);
  }
  encode_checksum_page({volume_tag_, segment, page}, synced_pages, checksums_,
                       checksum_page_.bytes());
}

Bytes BatchBuilder::next_page(RunCursor& cursor, SegmentId segment, std::uint64_t offset,
                              std::vector<Placed>& placed) {
  const Bytes rest = cursor.rest();
  if (rest.size() >= kPageSize && reinterpret_cast<std::uintptr_t>(rest.data()) % kPageSize == 0) {
    place(cursor, segment, offset, kPageSize, placed);
    return rest.first(kPageSize);
  }
  if (staging_.size() == 0) staging_ = AlignedBuffer(kPagesPerBatchMax * kPageSize);
  const MutableBytes page = staging_.bytes().subspan(staged_pages_++ * kPageSize, kPageSize);
  std::size_t filled = 0;
  while (filled < kPageSize && !cursor.done()) {
    const Bytes part = cursor.rest().first(std::min(cursor.rest().size(), kPageSize - filled));
    std::memcpy(page.data() + filled, part.data(), part.size());
    place(cursor, segment, offset + filled, part.size(), placed);
    filled += part.size();
  }
  std::memset(page.data() + filled, 0, kPageSize - filled);
  return page;
}

void BatchBuilder::place(RunCursor& cursor, SegmentId segment, std::uint64_t offset,
                         std::size_t size, std::vector<Placed>& placed) {
  Placed* last = placed.empty() ? nullptr : &placed.back();
  if (last != nullptr && last->run == cursor.run() && last->segment == segment &&
      last->segment_offset + last->length == offset)
    last->length += size;
  else
    placed.push_back({cursor.run(), cursor.offset(), size, segment, offset});
  cursor.advance(size);
  data_bytes_ += size;
}

void BatchBuilder::add_piece(Bytes page) {
  Bytes& last = pieces_.back();
  if (pieces_.size() > 1 && last.data() + last.size() == page.data())
    last = Bytes(last.data(), last.size() + page.size());
  else
    pieces_.push_back(page);
}

}  // namespace kvsyncfs
