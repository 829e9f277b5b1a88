#include "engine/base/buffer_pool.h"

namespace kvsyncfs {

std::byte* BufferPool::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) grow();
  std::byte* piece = free_.back();
  free_.pop_back();
  return piece;
}

void BufferPool::give_back(std::byte* piece) {
  std::lock_guard lock(mutex_);
  free_.push_back(piece);
}

void BufferPool::grow() {
  chunks_.emplace_back(kHugePageSize);
  free_.reserve(chunks_.size() * (kHugePageSize / piece_size_));
  // Backwards, so that pieces taken one after the other lie one behind the other.
  for (std::size_t at = kHugePageSize; at > 0; at -= piece_size_)
    free_.push_back(chunks_.back().data() + at - piece_size_);
}

}  // namespace kvsyncfs
