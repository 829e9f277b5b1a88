// Page frames of the write buffer: 4 KiB pages out of huge pages, so that a flush can hand them to
// the disk without a copy and frames taken in a row reach it as one piece. The last frame given
// back is the first taken. The pool grows in chunks; how many frames may be out is its user's
// account (P8). Thread: any.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "engine/base/bytes.h"

namespace kvsyncfs {

class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// A page of unknown content; owned by the caller until give_back. Throws std::bad_alloc.
  std::byte* take();
  void give_back(std::byte* frame);

 private:
  void grow();
  std::mutex mutex_;
  std::vector<std::byte*> free_;
  std::vector<AlignedBuffer> chunks_;
};

}  // namespace kvsyncfs
