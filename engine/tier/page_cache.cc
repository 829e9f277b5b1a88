#include "engine/tier/page_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace kvsyncfs {
namespace {

constexpr std::size_t kShardsMax = 16;
constexpr std::size_t kShardFramesMin =
    64;  // a small arena has fewer shards, so that CLOCK has a choice

/// Mixes all bits into all bits (the finalizer of MurmurHash3).
std::uint64_t hash(const PageKey& key) {
  std::uint64_t x = key.segment.value * 0x9e3779b97f4a7c15ull + key.page;
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

/// A part of the arena: its frames, their index (open addressing, at most half full) and the
/// clock's hand.
class Shard {
 public:
  void start(std::byte* memory, std::uint32_t frame_count) {
    memory_ = memory;
    frames_.resize(frame_count);
    slots_.resize(std::bit_ceil(std::size_t{2} * frame_count));
  }

  bool read(const PageKey& key, std::uint64_t h, std::size_t offset, MutableBytes out) {
    std::lock_guard lock(mutex_);
    const std::uint32_t entry = slots_[find(key, h)];
    if (entry == kEmpty) return false;
    frames_[entry - 1].referenced = true;
    if (!out.empty()) std::memcpy(out.data(), page(entry - 1) + offset, out.size());
    return true;
  }

  bool contains(const PageKey& key, std::uint64_t h) {
    std::lock_guard lock(mutex_);
    return slots_[find(key, h)] != kEmpty;
  }

  void insert(const PageKey& key, std::uint64_t h, Bytes bytes) {
    std::lock_guard lock(mutex_);
    if (slots_[find(key, h)] != kEmpty) return;
    const std::uint32_t frame = take_frame();
    frames_[frame] = {key, false};
    std::memcpy(page(frame), bytes.data(), kPageSize);
    slots_[find(key, h)] = frame + 1;  // again: an eviction moves slots
  }

  std::uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kEmpty = 0;  // else frame number + 1
  struct Frame {
    PageKey key;
    bool referenced = false;
  };

  std::byte* page(std::uint32_t frame) const { return memory_ + std::size_t{frame} * kPageSize; }
  std::size_t next(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  std::size_t home(std::uint64_t h) const { return h & (slots_.size() - 1); }

  /// The slot of the key, or the empty one where it belongs.
  std::size_t find(const PageKey& key, std::uint64_t h) const {
    std::size_t slot = home(h);
    while (slots_[slot] != kEmpty && frames_[slots_[slot] - 1].key != key) slot = next(slot);
    return slot;
  }

  /// Closes the gap, so that no search ends too early.
  void erase(std::size_t gap) {
    for (std::size_t slot = next(gap); slots_[slot] != kEmpty; slot = next(slot)) {
      const std::size_t wanted = home(hash(frames_[slots_[slot] - 1].key));
      const std::size_t mask = slots_.size() - 1;
      if (((slot - wanted) & mask) < ((slot - gap) & mask))
        continue;  // it lies between home and gap
      slots_[gap] = slots_[slot];
      gap = slot;
    }
    slots_[gap] = kEmpty;
  }

  std::uint32_t take_frame() {
    const std::uint32_t used = used_.load(std::memory_order_relaxed);
    if (used < frames_.size()) {
      used_.store(used + 1, std::memory_order_relaxed);
      return used;
    }
    for (;;) {
      const std::uint32_t frame = hand_;
      hand_ = hand_ + 1 == frames_.size() ? 0 : hand_ + 1;
      if (frames_[frame].referenced) {
        frames_[frame].referenced = false;
        continue;
      }
      erase(find(frames_[frame].key, hash(frames_[frame].key)));
      return frame;
    }
  }

  std::mutex mutex_;
  std::byte* memory_ = nullptr;
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> slots_;
  std::uint32_t hand_ = 0;
  std::atomic<std::uint32_t> used_ = 0;
};

}  // namespace

struct PageCache::Impl {
  explicit Impl(std::uint64_t frame_count)
      : size(frame_count * kPageSize),
        shard_count(std::bit_floor(
            std::clamp<std::uint64_t>(frame_count / kShardFramesMin, 1, kShardsMax))),
        shards(shard_count) {
    void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    memory = static_cast<std::byte*>(mapped);
    std::uint64_t frame = 0;
    for (std::size_t i = 0; i < shard_count; ++i) {
      const std::uint64_t end = frame_count * (i + 1) / shard_count;
      shards[i].start(memory + frame * kPageSize, static_cast<std::uint32_t>(end - frame));
      frame = end;
    }
  }
  ~Impl() { ::munmap(memory, size); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // The upper bits: the lower ones choose the slot.
  Shard& shard(std::uint64_t h) { return shards[(h >> 48) & (shard_count - 1)]; }

  const std::uint64_t size;
  const std::size_t shard_count;
  std::vector<Shard> shards;
  std::byte* memory = nullptr;
};

PageCache::PageCache(std::uint64_t size_bytes) {
  if (size_bytes >= kPageSize) impl_ = std::make_unique<Impl>(size_bytes / kPageSize);
}

PageCache::~PageCache() = default;

bool PageCache::read(PageKey key, std::size_t offset, MutableBytes out) {
  assert(offset <= kPageSize && out.size() <= kPageSize - offset);
  if (!impl_) return false;
  const std::uint64_t h = hash(key);
  return impl_->shard(h).read(key, h, offset, out);
}

bool PageCache::contains(PageKey key) const {
  if (!impl_) return false;
  const std::uint64_t h = hash(key);
  return impl_->shard(h).contains(key, h);
}

void PageCache::insert(PageKey key, Bytes page) {
  assert(page.size() == kPageSize);
  if (!impl_) return;
  const std::uint64_t h = hash(key);
  impl_->shard(h).insert(key, h, page);
}

std::uint64_t PageCache::used_bytes() const {
  std::uint64_t frames = 0;
  if (impl_) {
    for (const Shard& shard : impl_->shards) frames += shard.used();
  }
  return frames * kPageSize;
}

std::uint64_t PageCache::size_bytes() const { return impl_ ? impl_->size : 0; }

}  // namespace kvsyncfs
