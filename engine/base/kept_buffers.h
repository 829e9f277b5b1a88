// Large buffers that several hold for a moment, such as the bytes of a message: a few that were let
// go of are kept for those to come. The kernel would clear the memory of each anew, which costs
// more than to fill it.
//
// One stock for the process, bounded by kKeptBytesMax; of each size class the last one let go of
// is the first to be given again. In a build with the address sanitizer nothing is kept, so that a
// use after the end is found. Thread: any; one mutex, a leaf.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/base/bytes.h"

namespace kvsyncfs {

inline constexpr std::size_t kKeptBytesMax = 16u << 20;

/// At least `size` bytes, of unknown content. Throws std::bad_alloc.
std::shared_ptr<AlignedBuffer> take_kept_buffer(std::size_t size);
/// Bytes in stock now.
std::size_t kept_buffer_bytes();

}  // namespace kvsyncfs
