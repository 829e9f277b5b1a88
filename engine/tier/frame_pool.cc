#include "engine/tier/frame_pool.h"

#include <sys/mman.h>

#include <new>

#include "engine/base/ids.h"

namespace kvsyncfs {

namespace {
constexpr std::size_t kChunkSize = 1u << 20;  // bytes
}

FramePool::~FramePool() {
  for (std::byte* chunk : chunks_) ::munmap(chunk, kChunkSize);
}

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
  void* chunk =
      ::mmap(nullptr, kChunkSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (chunk == MAP_FAILED) throw std::bad_alloc();
  chunks_.push_back(static_cast<std::byte*>(chunk));
  free_.reserve(chunks_.size() * (kChunkSize / kPageSize));
  // Backwards, so that frames taken one after the other lie one behind the other.
  for (std::size_t at = kChunkSize; at > 0; at -= kPageSize)
    free_.push_back(chunks_.back() + at - kPageSize);
}

}  // namespace kvsyncfs
