#include "tests/sim/sim_image.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace kvsyncfs {

void SimImage::resize(std::uint64_t size) {
  if (size < size_) {
    pages_.erase(pages_.lower_bound(round_up(size, kPageSize) / kPageSize), pages_.end());
    const auto last = pages_.find(size / kPageSize);
    if (size % kPageSize != 0 && last != pages_.end()) {
      auto page = std::make_shared<Page>(*last->second);
      std::fill(page->begin() + static_cast<std::ptrdiff_t>(size % kPageSize), page->end(),
                std::byte{});
      last->second = std::move(page);
    }
  }
  size_ = size;
}

void SimImage::write(std::uint64_t offset, Bytes bytes) {
  size_ = std::max(size_, offset + bytes.size());
  while (!bytes.empty()) {
    const std::size_t at = offset % kPageSize;
    const std::size_t size = std::min(bytes.size(), kPageSize - at);
    auto& slot = pages_[offset / kPageSize];
    auto page = slot ? std::make_shared<Page>(*slot) : std::make_shared<Page>();
    std::memcpy(page->data() + at, bytes.data(), size);
    slot = std::move(page);
    bytes = bytes.subspan(size);
    offset += size;
  }
}

void SimImage::read(std::uint64_t offset, MutableBytes out) const {
  assert(offset + out.size() <= size_);
  while (!out.empty()) {
    const std::size_t at = offset % kPageSize;
    const std::size_t size = std::min(out.size(), kPageSize - at);
    const auto found = pages_.find(offset / kPageSize);
    if (found == pages_.end())
      std::memset(out.data(), 0, size);
    else
      std::memcpy(out.data(), found->second->data() + at, size);
    out = out.subspan(size);
    offset += size;
  }
}

void apply(SimImage& image, const SimChange& change) {
  switch (change.kind) {
    case SimChange::Kind::kWrite:
      return image.write(change.offset, as_bytes(change.bytes));
    case SimChange::Kind::kGrow:
      return image.resize(std::max(image.size(), change.size));
    case SimChange::Kind::kTruncate:
      return image.resize(change.size);
  }
}

namespace {

void write_sectors(SimImage& image, const SimChange& change, std::uint64_t sector_size,
                   SimRandom& random) {
  const Bytes bytes = as_bytes(change.bytes);
  for (std::uint64_t done = 0; done < bytes.size();) {
    const std::uint64_t offset = change.offset + done;
    const std::uint64_t size =
        std::min<std::uint64_t>(bytes.size() - done, sector_size - offset % sector_size);
    const std::uint64_t fate = random.below(16);
    std::uint64_t kept = fate < 8 ? size : 0;
    if (fate == 15) kept = random.below(size + 1);  // torn
    // Where the file did not grow there is no place for it.
    kept = offset < image.size() ? std::min(kept, image.size() - offset) : 0;
    if (kept > 0) image.write(offset, bytes.subspan(done, kept));
    done += size;
  }
}

}  // namespace

void apply_some(SimImage& image, const SimChange& change, std::uint64_t sector_size,
                SimRandom& random) {
  const std::uint64_t fate = random.below(4);
  if (fate == 0) return;
  if (fate == 1 || change.kind != SimChange::Kind::kWrite) return apply(image, change);
  const std::uint64_t end = change.offset + change.bytes.size();
  if (end > image.size() && !random.one_in(4)) image.resize(end);
  write_sectors(image, change, sector_size, random);
}

}  // namespace kvsyncfs
