#include "engine/format/superblock.h"

#include <gtest/gtest.h>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

Superblock sample() {
  Superblock s;
  for (std::size_t i = 0; i < s.uuid.size(); ++i) s.uuid[i] = static_cast<std::uint8_t>(0x10 + i);
  s.label = "data";
  s.compatible = 5;
  s.size_bytes = 10ull << 30;
  s.segment_size_bytes = 64u << 20;
  s.log_file_size_bytes = 32u << 20;
  s.log_file_count_max = 8;
  s.created_seconds = -2;
  return s;
}

/// The bytes with `edit` applied and the checksum made right again.
template <typename Edit>
std::string resealed(std::string bytes, Edit edit) {
  edit(bytes);
  const std::uint32_t checksum = crc32c(as_bytes(std::string_view(bytes).substr(4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

TEST(Superblock, GoldenBytes) {
  const std::string bytes = encode(sample());
  ASSERT_EQ(bytes.size(), kSuperblockSize);
  const std::string fields(
      "KVSYNCFS\x01\x00\x00\x00"
      "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"
      "\x05\x00\x00\x00\x00\x00\x00\x00"
      "\x00\x00\x00\x00\x00\x00\x00\x00"
      "\x00\x00\x00\x00\x00\x00\x00\x00"
      "\x00\x00\x00\x80\x02\x00\x00\x00"
      "\x00\x00\x00\x04\x00\x00\x00\x00"
      "\x00\x00\x00\x02\x00\x00\x00\x00"
      "\x08\x00\x00\x00"
      "\x04\x00\x00\x00"
      "\xfe\xff\xff\xff\xff\xff\xff\xff"
      "data",
      96);
  EXPECT_EQ(bytes.substr(4, fields.size()), fields);
  EXPECT_EQ(bytes.substr(4 + fields.size()), std::string(4092 - fields.size(), '\0'));
  EXPECT_EQ(bytes, resealed(bytes, [](std::string&) {}));
}

TEST(Superblock, RoundTrip) {
  for (const std::string& label : {std::string(), std::string("x"), std::string(64, 'l')}) {
    Superblock s = sample();
    s.label = label;
    const Result<Superblock> decoded = decode_superblock(encode(s));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, s);
  }
}

TEST(Superblock, AnyFlippedBitIsRefused) {
  const std::string good = encode(sample());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    const Result<Superblock> decoded = decode_superblock(bad);
    ASSERT_FALSE(decoded) << "byte " << at;
    const bool in_magic = at >= 4 && at < 12;
    EXPECT_EQ(decoded.error().code, in_magic ? Code::kNotFormatted : Code::kCorrupt) << at;
  }
}

TEST(Superblock, ShortZeroAndForeignBytesAreRefused) {
  const std::string good = encode(sample());
  EXPECT_EQ(decode_superblock({}).error().code, Code::kNotFormatted);
  EXPECT_EQ(decode_superblock(std::string(4096, '\0')).error().code, Code::kNotFormatted);
  EXPECT_EQ(decode_superblock(std::string(4096, 'x')).error().code, Code::kNotFormatted);
  for (std::size_t size = 0; size < good.size(); size += 7)
    EXPECT_FALSE(decode_superblock(std::string_view(good).substr(0, size))) << size;
}

TEST(Superblock, NewerFormatIsToldFromDamage) {
  const std::string good = encode(sample());
  const auto newer_version = resealed(good, [](std::string& b) { put(b, 12, 2, 4); });
  const auto unknown_feature = resealed(good, [](std::string& b) { put(b, 48, 2, 8); });
  EXPECT_EQ(decode_superblock(newer_version).error().code, Code::kNewerFormat);
  EXPECT_EQ(decode_superblock(unknown_feature).error().code, Code::kNewerFormat);
  // An unsealed change is damage, whatever the version field says.
  std::string damaged = good;
  put(damaged, 12, 2, 4);
  EXPECT_EQ(decode_superblock(damaged).error().code, Code::kCorrupt);
}

TEST(Superblock, ClusterIsAKnownFeature) {
  Superblock cluster = sample();
  cluster.incompatible = kIncompatibleCluster;
  EXPECT_EQ(encode(cluster)[48], 1);
  EXPECT_EQ(*decode_superblock(encode(cluster)), cluster);
}

TEST(Superblock, UnknownCompatibleFeaturesAreKept) {
  const auto bytes = resealed(encode(sample()), [](std::string& b) {
    put(b, 32, ~std::uint64_t{0}, 8);
    put(b, 40, 2, 8);
  });
  const Result<Superblock> decoded = decode_superblock(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->compatible, ~std::uint64_t{0});
  EXPECT_EQ(decoded->read_only_compatible, 2u) << "the opener decides about read-only";
}

TEST(Superblock, FieldsOutOfRangeAreCorrupt) {
  const struct {
    std::size_t at;
    std::uint64_t value;
    std::size_t size;
  } cases[] = {{12, 0, 4},    {56, 0, 8}, {64, 0, 8},  {64, 4097, 8},      {72, 0, 8},
               {72, 4095, 8}, {80, 0, 4}, {84, 65, 4}, {84, 0xffffffff, 4}};
  for (const auto& c : cases) {
    const auto bytes =
        resealed(encode(sample()), [&](std::string& b) { put(b, c.at, c.value, c.size); });
    const Result<Superblock> decoded = decode_superblock(bytes);
    ASSERT_FALSE(decoded) << c.at;
    EXPECT_EQ(decoded.error().code, Code::kCorrupt) << c.at;
  }
}

TEST(SuperblockFile, OneGoodCopyIsEnough) {
  const std::string good = encode_superblock_file(sample());
  ASSERT_EQ(good.size(), kSuperblockFileSize);
  std::string first_bad = good, second_bad = good, both_bad = good;
  first_bad[100] ^= 1;
  second_bad[4096 + 100] ^= 1;
  both_bad[100] ^= 1;
  both_bad[4096 + 100] ^= 1;
  ASSERT_TRUE(decode_superblock_file(first_bad));
  EXPECT_EQ(*decode_superblock_file(first_bad), sample());
  EXPECT_TRUE(decode_superblock_file(second_bad));
  EXPECT_TRUE(decode_superblock_file(good.substr(0, 4096)));
  EXPECT_EQ(decode_superblock_file(both_bad).error().code, Code::kCorrupt);
  EXPECT_EQ(decode_superblock_file(good.substr(0, 4095)).error().code, Code::kCorrupt);
  EXPECT_EQ(decode_superblock_file({}).error().code, Code::kNotFormatted);
  EXPECT_EQ(decode_superblock_file(std::string(8192, '\0')).error().code, Code::kNotFormatted);
}

TEST(SuperblockFile, NewerFirstCopyIsNotOverruledByAnOldSecond) {
  std::string bytes = encode_superblock_file(sample());
  bytes.replace(0, 4096, resealed(bytes.substr(0, 4096), [](std::string& b) { put(b, 48, 2, 8); }));
  EXPECT_EQ(decode_superblock_file(bytes).error().code, Code::kNewerFormat);
}

TEST(Uuid, TextAndBack) {
  const std::string text = "10111213-1415-1617-1819-1a1b1c1d1e1f";
  EXPECT_EQ(sample().uuid_text(), text);
  ASSERT_TRUE(parse_uuid(text));
  EXPECT_EQ(*parse_uuid(text), sample().uuid);
  EXPECT_TRUE(parse_uuid("10111213-1415-1617-1819-1A1B1C1D1E1F"));
  EXPECT_EQ(sample().volume_tag(), 0x1716151413121110u);
}

TEST(Uuid, NonsenseIsInvalid) {
  for (const char* text :
       {"", "1", "10111213-1415-1617-1819-1a1b1c1d1e1", "10111213-1415-1617-1819-1a1b1c1d1e1f0",
        "10111213141516171819-1a1b1c1d1e1f0000", "10111213-1415-1617-1819-1a1b1c1d1e1g",
        "10111213+1415-1617-1819-1a1b1c1d1e1f", " 10111213-1415-1617-1819-1a1b1c1d1e1f",
        "101112131415161718191a1b1c1d1e1f"}) {
    const auto parsed = parse_uuid(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
  }
}

}  // namespace
}  // namespace kvsyncfs
