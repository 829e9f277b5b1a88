#include "engine/format/scrub_mark.h"

#include <gtest/gtest.h>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

ScrubMark sample() { return {0x1716151413121110, {0x0203}, 7, 0x65000000, 2, 3}; }

/// The bytes with one u32 changed and the checksum made right again.
std::string with(std::size_t at, std::uint32_t value) {
  std::string bytes = encode(sample());
  const auto put = [&bytes](std::size_t where, std::uint32_t number) {
    for (std::size_t i = 0; i < 4; ++i) bytes[where + i] = static_cast<char>(number >> (8 * i));
  };
  put(at, value);
  put(0, crc32c(as_bytes(std::string_view(bytes).substr(4))));
  return bytes;
}

Code code_of(std::string_view bytes) {
  const auto mark = decode_scrub_mark(bytes);
  return mark ? Code{} : mark.error().code;
}

TEST(ScrubMark, GoldenBytes) {
  const std::string fields(
      "KVSK\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x10\x11\x12\x13\x14\x15\x16\x17"
      "\x03\x02\x00\x00\x00\x00\x00\x00"
      "\x07\x00\x00\x00\x00\x00\x00\x00"
      "\x00\x00\x00\x65\x00\x00\x00\x00"
      "\x02\x00\x00\x00\x03\x00\x00\x00",
      52);
  const std::string bytes = encode(sample());
  EXPECT_EQ(bytes.substr(4), fields);
  EXPECT_EQ(bytes, with(4, 0x4b53564b));
  EXPECT_EQ(bytes.size(), kScrubMarkSize);
  EXPECT_EQ(*decode_scrub_mark(bytes), sample());
}

TEST(ScrubMark, AnyFlippedBitAndOtherSizesAreRefused) {
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

TEST(ScrubMark, ALaterVersionIsNewer) {
  EXPECT_EQ(code_of(with(8, 2)), Code::kNewerFormat);
  EXPECT_EQ(code_of(with(12, 1)), Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
