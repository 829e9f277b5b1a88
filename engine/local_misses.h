// The misses of a lone node. Thread: any.
#pragma once

#include "engine/store/segment_store.h"
#include "engine/tier/miss_source.h"

namespace kvsyncfs {

/// Misses of a lone node come from its own segments.
class LocalMissSource final : public MissSource {
 public:
  explicit LocalMissSource(SegmentStore& store) : store_(store) {}
  Status load(SegmentId segment, std::uint64_t offset, MutableBytes out) override {
    return store_.read(segment, offset, out);
  }
  Result<std::size_t> load_some(SegmentId segment, std::uint64_t page, MutableBytes out) override {
    return store_.load_pages(segment, page, out);
  }

 private:
  SegmentStore& store_;
};

}  // namespace kvsyncfs
