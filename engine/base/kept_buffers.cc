#include "engine/base/kept_buffers.h"

#include <array>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

namespace kvsyncfs {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeepsSome = false;
#else
constexpr bool kKeepsSome = true;
#endif
// Smaller ones come from the heap, which keeps them itself; the largest is a batch of a segment.
constexpr std::size_t kSizeMin = 256u << 10, kSizeMax = 4u << 20;

class Stock {
 public:
  /// Never destroyed: buffers may outlive everything.
  static Stock& of_process() {
    static auto* const stock = new Stock;
    return *stock;
  }
  std::unique_ptr<AlignedBuffer> take(std::size_t size) {
    std::lock_guard lock(mutex_);
    auto& kept = of(size);
    if (kept.empty()) return nullptr;
    auto buffer = std::move(kept.back());
    kept.pop_back();
    bytes_ -= size;
    return buffer;
  }
  void give(std::unique_ptr<AlignedBuffer> buffer) {  // freed after the lock, if there are enough
    std::lock_guard lock(mutex_);
    if (bytes_ + buffer->size() > kKeptBytesMax) return;
    bytes_ += buffer->size();
    auto& kept = of(buffer->size());
    kept.push_back(std::move(buffer));
  }
  std::size_t bytes() {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  using Kept = std::vector<std::unique_ptr<AlignedBuffer>>;
  Kept& of(std::size_t size) {
    return kept_[static_cast<std::size_t>(std::countr_zero(size / kSizeMin))];
  }
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::array<Kept, std::countr_zero(kSizeMax / kSizeMin) + 1> kept_;
};

}  // namespace

std::shared_ptr<AlignedBuffer> take_kept_buffer(std::size_t size) {
  if (!kKeepsSome || size <= kSizeMin / 2 || size > kSizeMax)
    return std::make_shared<AlignedBuffer>(size);
  const std::size_t rounded = std::bit_ceil(size);
  auto buffer = Stock::of_process().take(rounded);
  if (!buffer) buffer = std::make_unique<AlignedBuffer>(rounded);
  return {buffer.release(), [](AlignedBuffer* done) {
            Stock::of_process().give(std::unique_ptr<AlignedBuffer>(done));
          }};
}

std::size_t kept_buffer_bytes() { return Stock::of_process().bytes(); }

}  // namespace kvsyncfs
