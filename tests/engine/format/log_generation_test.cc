#include "engine/format/log_generation.h"

#include <gtest/gtest.h>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

StoreGeneration sample() {
  return {0x1716151413121110, 1, 0x0000000105060708, {0x2726252423222120}};
}

/// The bytes with one u32 or u64 changed and the checksum made right again.
std::string with(std::size_t at, std::uint64_t value, std::size_t size) {
  std::string bytes = encode(sample());
  for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  const std::uint32_t checksum = crc32c(as_bytes(std::string_view(bytes).substr(4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

Code code_of(std::string_view bytes) {
  const auto state = decode_store_generation(bytes);
  return state ? Code{} : state.error().code;
}

TEST(LogGeneration, EachIsGreaterThanItsFormerAndDrawn) {
  const std::uint64_t second = generation_after(kFirstGeneration, 7);
  const std::uint64_t other = generation_after(kFirstGeneration, 8);
  EXPECT_NE(second, other) << "two that begin without knowing of each other";
  EXPECT_GT(second, kFirstGeneration);
  EXPECT_GT(generation_after(second, 0), other) << "whatever was drawn";
  EXPECT_EQ(generation_count(kFirstGeneration), 1u);
  EXPECT_EQ(generation_count(second), 2u);
  EXPECT_EQ(generation_count(generation_after(second, ~0ull)), 3u);
}

TEST(LogGeneration, BasesAreBeyondAllOfTheGenerationBefore) {
  const std::uint64_t second = generation_after(kFirstGeneration, 0xffffffff);
  EXPECT_EQ(generation_base({0}, second), Position{kPositionsPerGeneration + 0xffffffff});
  EXPECT_EQ(generation_base({kPositionsPerGeneration - 1}, generation_after(1, 0)),
            Position{kPositionsPerGeneration});
  const Position base = generation_base({1000}, second);
  EXPECT_GT(generation_base(base, generation_after(second, 0)), Position{base.value + (1u << 30)});
}

TEST(LogGeneration, IncarnationsGrowFromOneToTheNext) {
  EXPECT_EQ(incarnations_before(kFirstGeneration), 0u);
  const std::uint64_t second = generation_after(kFirstGeneration, 5);
  EXPECT_GT(incarnations_before(second), 1'000'000'000u);
  EXPECT_GT(incarnations_before(generation_after(second, 0)),
            incarnations_before(second) + 1'000'000'000);
}

TEST(LogGeneration, GoldenBytes) {
  const std::string fields(
      "KVGN\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x10\x11\x12\x13\x14\x15\x16\x17"
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x08\x07\x06\x05\x01\x00\x00\x00"
      "\x20\x21\x22\x23\x24\x25\x26\x27",
      44);
  const std::string bytes = encode(sample());
  EXPECT_EQ(bytes.size(), kGenerationFileSize);
  EXPECT_EQ(bytes.substr(4), fields);
  EXPECT_EQ(*decode_store_generation(bytes), sample());
  StoreGeneration first;
  first.volume_tag = 3;
  EXPECT_EQ(*decode_store_generation(encode(first)), first);
}

TEST(LogGeneration, TheFolderOfWhatIsBegunIsVersionTwo) {
  StoreGeneration state = sample();
  state.folder = 2;
  const std::string bytes = encode(state);
  EXPECT_EQ(bytes.substr(8, 8), std::string("\x02\x00\x00\x00\x02\x00\x00\x00", 8));
  EXPECT_EQ(*decode_store_generation(bytes), state);
}

TEST(LogGeneration, AnyFlippedBitIsRefused) {
  const std::string good = encode(sample());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(code_of(bad), Code::kCorrupt) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(code_of(std::string_view(good).substr(0, size)), Code::kCorrupt) << size;
  EXPECT_EQ(code_of(good + '\0'), Code::kCorrupt);
}

TEST(LogGeneration, FieldsOutOfRangeAreCorruptAndALaterVersionIsNewer) {
  EXPECT_EQ(code_of(with(8, 3, 4)), Code::kNewerFormat);
  EXPECT_EQ(code_of(with(8, 2, 4)), Code::kCorrupt) << "of the version with a folder, without one";
  EXPECT_EQ(code_of(with(12, 1, 4)), Code::kCorrupt);
  EXPECT_EQ(code_of(with(24, 0, 8)), Code::kCorrupt);
  EXPECT_EQ(code_of(with(24, sample().next, 8)), Code::kCorrupt) << "it cannot follow itself";
  EXPECT_EQ(code_of(with(32, 0, 8)), Code::kCorrupt) << "a base of nothing";
  EXPECT_EQ(code_of(with(40, 0, 8)), Code::kCorrupt) << "a beginning without a base";
}

}  // namespace
}  // namespace kvsyncfs
