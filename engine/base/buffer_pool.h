// Pieces of memory of one size out of huge pages: the write buffer's page frames, so that a flush
// hands them to the disk without a copy and frames taken in a row reach it as one piece, and the
// buffers of reads. The last piece given back is the first taken. The pool grows by a huge page at
// a time and keeps what it has; how many pieces may be out is its user's account (P8). Thread: any.
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"

namespace kvsyncfs {

class BufferPool {
 public:
  /// `piece_size` in bytes divides kHugePageSize and is a multiple of 4096.
  explicit BufferPool(std::size_t piece_size) : piece_size_(piece_size) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A piece of unknown content; owned by the caller until give_back. Throws std::bad_alloc.
  std::byte* take();
  void give_back(std::byte* piece);
  std::size_t piece_size() const { return piece_size_; }

 private:
  void grow();
  const std::size_t piece_size_;
  std::mutex mutex_;
  std::vector<std::byte*> free_;
  std::vector<AlignedBuffer> chunks_;
};

/// One piece for the length of a scope.
class PooledBuffer {
 public:
  explicit PooledBuffer(BufferPool& pool) : pool_(pool), piece_(pool.take()) {}
  ~PooledBuffer() { pool_.give_back(piece_); }
  PooledBuffer(const PooledBuffer&) = delete;
  PooledBuffer& operator=(const PooledBuffer&) = delete;
  MutableBytes bytes() { return {piece_, pool_.piece_size()}; }

 private:
  BufferPool& pool_;
  std::byte* const piece_;
};

}  // namespace kvsyncfs
