#include "engine/base/bytes.h"

#include <sys/mman.h>

#include <new>

#include "engine/base/ids.h"

namespace kvsyncfs {

AlignedBuffer::AlignedBuffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  const bool large = size >= kHugePageSize / 2;
  const std::size_t alignment = large ? kHugePageSize : kPageSize;
  // aligned_alloc wants a multiple of the alignment.
  void* memory = std::aligned_alloc(alignment, round_up(size, alignment));
  if (memory == nullptr) throw std::bad_alloc();
  if (large) advise_huge_pages(memory, round_up(size, alignment));
  data_.reset(static_cast<std::byte*>(memory));
}

void advise_huge_pages(void* memory, std::size_t size) {
  ::madvise(memory, size, MADV_HUGEPAGE);  // a kernel without them refuses, and nothing is lost
}

}  // namespace kvsyncfs
