#include "engine/tier/frame_pool.h"

#include "engine/base/ids.h"

namespace kvsyncfs {

std::byte* FramePool::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) grow();
  std::byte* frame = free_.back();
  free_.pop_back();
  return frame;
}

void FramePool::give_back(std::byte* frame) {
  std::lock_guard lock(mutex_);
  free_.push_back(frame);
}

void FramePool::grow() {
  chunks_.emplace_back(kHugePageSize);
  free_.reserve(chunks_.size() * (kHugePageSize / kPageSize));
  // Backwards, so that frames taken one after the other lie one behind the other.
  for (std::size_t at = kHugePageSize; at > 0; at -= kPageSize)
    free_.push_back(chunks_.back().data() + at - kPageSize);
}

}  // namespace kvsyncfs
