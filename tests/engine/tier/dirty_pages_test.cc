#include "engine/tier/dirty_pages.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace kvsyncfs {
namespace {

std::string overlay(const DirtyPages& dirty, std::uint64_t offset, std::size_t size) {
  std::string out(size, '.');
  dirty.overlay(offset, {reinterpret_cast<std::byte*>(out.data()), size});
  return out;
}

TEST(DirtyPages, OverlayShowsOnlyTheBytesWritten) {
  BufferPool pool{kPageSize};
  DirtyPages dirty(pool);
  dirty.write(3, as_bytes("abc"));
  dirty.write(8, as_bytes("xy"));
  EXPECT_EQ(overlay(dirty, 0, 12), "...abc..xy..");
  EXPECT_EQ(dirty.page_count(), 1u);
}

TEST(DirtyPages, TouchingAndOverlappingWritesMerge) {
  BufferPool pool{kPageSize};
  DirtyPages dirty(pool);
  dirty.write(10, as_bytes("aa"));
  dirty.write(14, as_bytes("bb"));
  dirty.write(12, as_bytes("cc"));
  int pieces = 0;
  dirty.for_each([&](std::uint64_t offset, Bytes piece) {
    ++pieces;
    EXPECT_EQ(offset, 10u);
    EXPECT_EQ(as_string(piece), "aaccbb");
  });
  EXPECT_EQ(pieces, 1);
}

TEST(DirtyPages, CoversSpansPagesAndSeesGaps) {
  BufferPool pool{kPageSize};
  DirtyPages dirty(pool);
  dirty.write(0, as_bytes(std::string(3 * kPageSize, 'a')));
  EXPECT_TRUE(dirty.covers(0, 3 * kPageSize));
  EXPECT_TRUE(dirty.covers(kPageSize - 1, 2));
  EXPECT_FALSE(dirty.covers(0, 3 * kPageSize + 1));
  dirty.drop(kPageSize + 5, kPageSize + 6);
  EXPECT_FALSE(dirty.covers(0, 3 * kPageSize));
  EXPECT_EQ(dirty.next_range(kPageSize + 5), (ByteRange{kPageSize + 6, 3 * kPageSize}));
}

TEST(DirtyPages, DropOfEverythingGivesFramesBack) {
  BufferPool pool{kPageSize};
  DirtyPages dirty(pool);
  dirty.write(100, as_bytes(std::string(10000, 'a')));
  dirty.drop(100, 10100);
  EXPECT_TRUE(dirty.empty());
  EXPECT_EQ(dirty.unlogged_bytes(), 0u);
}

TEST(DirtyPages, AWriteToALoggedPageIsUnloggedAgain) {
  BufferPool pool{kPageSize};
  DirtyPages dirty(pool);
  dirty.write(0, as_bytes(std::string(2 * kPageSize, 'a')));
  dirty.mark_logged();
  EXPECT_EQ(dirty.unlogged_bytes(), 0u);
  dirty.write(kPageSize, as_bytes("b"));
  EXPECT_EQ(dirty.unlogged_bytes(), kPageSize);
  int pieces = 0;
  const auto count = [&](std::uint64_t offset, Bytes) {
    EXPECT_EQ(offset, kPageSize);
    ++pieces;
  };
  dirty.for_each(count, true);
  EXPECT_EQ(pieces, 1);
}

TEST(DirtyPages, NewerBytesWinWhenAnOlderLayerIsTakenBack) {
  BufferPool pool{kPageSize};
  DirtyPages older(pool), newer(pool);
  older.write(0, as_bytes("aaaaaa"));
  newer.write(2, as_bytes("bb"));
  newer.absorb_older(older);
  EXPECT_EQ(overlay(newer, 0, 6), "aabbaa");
  EXPECT_TRUE(older.empty());
}

TEST(DirtyPages, AgreesWithAPlainArrayUnderRandomChanges) {
  constexpr std::size_t kSize = 5 * kPageSize;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    BufferPool pool{kPageSize};
    DirtyPages dirty(pool);
    std::string model(kSize, '.');
    for (int step = 0; step < 400; ++step) {
      const std::size_t begin = random() % kSize;
      const std::size_t size =
          1 + random() % std::min<std::size_t>(kSize - begin, step % 3 ? 9000 : 40);
      if (random() % 4 == 0) {
        dirty.drop(begin, begin + size);
        model.replace(begin, size, size, '.');
      } else {
        const std::string bytes(size, static_cast<char>('a' + random() % 26));
        dirty.write(begin, as_bytes(bytes));
        model.replace(begin, size, bytes);
      }
    }
    EXPECT_EQ(overlay(dirty, 0, kSize), model) << "seed " << seed;
    std::string pieces(kSize, '.');
    dirty.for_each([&](std::uint64_t offset, Bytes piece) {
      pieces.replace(offset, piece.size(), as_string(piece));
    });
    EXPECT_EQ(pieces, model) << "seed " << seed;
  }
}

}  // namespace
}  // namespace kvsyncfs
