#include "engine/format/log_mark.h"

#include <gtest/gtest.h>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

LogMark sample() { return {0x1716151413121110, 3, 0x0102, "/kvsyncfs/v/log/1/e/x"}; }

/// The bytes with one u32 or u64 changed and the checksum made right again.
std::string with(std::size_t at, std::uint64_t value, std::size_t size) {
  std::string bytes = encode(sample());
  for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  const std::uint32_t checksum = crc32c(as_bytes(std::string_view(bytes).substr(4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

Code code_of(std::string_view bytes) {
  const auto mark = decode_log_mark(bytes);
  return mark ? Code{} : mark.error().code;
}

TEST(LogMark, GoldenBytes) {
  const std::string fields(
      "KVLM\x01\x00\x00\x00\x15\x00\x00\x00"
      "\x10\x11\x12\x13\x14\x15\x16\x17"
      "\x03\x00\x00\x00\x00\x00\x00\x00"
      "\x02\x01\x00\x00\x00\x00\x00\x00"
      "/kvsyncfs/v/log/1/e/x",
      57);
  const std::string bytes = encode(sample());
  EXPECT_EQ(bytes.substr(4), fields);
  EXPECT_EQ(bytes, with(4, 0x4d4c564b, 4));
  EXPECT_EQ(*decode_log_mark(bytes), sample());
}

TEST(LogMark, AnyFlippedBitIsRefused) {
  const std::string good = encode(sample());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(code_of(bad), Code::kCorrupt) << "bit " << bit;
  }
}

TEST(LogMark, OtherSizesAreRefused) {
  const std::string good = encode(sample());
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(code_of(std::string_view(good).substr(0, size)), Code::kCorrupt) << size;
  EXPECT_EQ(code_of(good + '\0'), Code::kCorrupt);
  LogMark longest = sample();
  longest.key = std::string(kLogMarkKeySizeMax, 'k');
  EXPECT_EQ(*decode_log_mark(encode(longest)), longest);
  EXPECT_EQ(code_of(encode(longest) + 'k'), Code::kCorrupt);
}

TEST(LogMark, FieldsOutOfRangeAreCorruptAndALaterVersionIsNewer) {
  EXPECT_EQ(code_of(with(8, 2, 4)), Code::kNewerFormat);
  EXPECT_EQ(code_of(with(12, 20, 4)), Code::kCorrupt);
  EXPECT_EQ(code_of(with(12, 0xffffffff, 4)), Code::kCorrupt);
  EXPECT_EQ(code_of(with(24, 0, 8)), Code::kCorrupt);
  EXPECT_EQ(code_of(with(32, 0, 8)), Code::kCorrupt);
  EXPECT_EQ(code_of(with(32, ~std::uint64_t{0}, 8)), Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
