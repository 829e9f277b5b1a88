#include "engine/base/bytes.h"

#include <new>

#include "engine/base/ids.h"

namespace kvsyncfs {

AlignedBuffer::AlignedBuffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  // aligned_alloc wants a multiple of the alignment.
  void* memory = std::aligned_alloc(kPageSize, round_up(size, kPageSize));
  if (memory == nullptr) throw std::bad_alloc();
  data_.reset(static_cast<std::byte*>(memory));
}

}  // namespace kvsyncfs
