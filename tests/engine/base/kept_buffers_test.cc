#include "engine/base/kept_buffers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace kvsyncfs {
namespace {

TEST(KeptBuffers, HoldAtLeastWhatWasAskedFor) {
  for (const std::size_t size : {1u, 4096u, 200u << 10, 1u << 20, 1001u * 4096, 5u << 20}) {
    const auto buffer = take_kept_buffer(size);
    ASSERT_GE(buffer->size(), size);
    std::memset(buffer->data(), 0x5a, size);
  }
}

#ifndef __SANITIZE_ADDRESS__  // there none is kept

TEST(KeptBuffers, OneThatWasLetGoOfServesTheNextOfItsSize) {
  for (const std::size_t size : {200u << 10, 1u << 20, 1001u * 4096}) {
    auto first = take_kept_buffer(size);
    const std::byte* const place = first->data();
    first.reset();
    const auto again = take_kept_buffer(size), another = take_kept_buffer(size);
    EXPECT_EQ(again->data(), place);
    EXPECT_NE(another->data(), place);
  }
}

TEST(KeptBuffers, AreKeptUpToTheBound) {
  std::vector<std::shared_ptr<AlignedBuffer>> many;
  for (std::size_t bytes = 0; bytes < 2 * kKeptBytesMax; bytes += 4u << 20)
    many.push_back(take_kept_buffer(4u << 20));
  EXPECT_LT(kept_buffer_bytes(), kKeptBytesMax);
  many.clear();
  EXPECT_LE(kept_buffer_bytes(), kKeptBytesMax);
  EXPECT_GT(kept_buffer_bytes(), kKeptBytesMax - (4u << 20));
}

#endif

}  // namespace
}  // namespace kvsyncfs
