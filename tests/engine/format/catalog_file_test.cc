#include "engine/format/catalog_file.h"

#include <gtest/gtest.h>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

CatalogFileHeader sample() {
  CatalogFileHeader header;
  for (std::size_t i = 0; i < header.volume.size(); ++i)
    header.volume[i] = static_cast<std::uint8_t>(i + 1);
  header.generation = 0x0807060504030201;
  header.position = {0x1817161514131211};
  header.taken = {0x2827262524232221, 0x00343332};
  header.hold = "monday";
  return header;
}

Code code_of(std::string_view bytes) {
  const auto header = decode_catalog_file_header(bytes);
  return header ? Code{} : header.error().code;
}

/// The bytes with one changed and the checksum made right again.
std::string with(std::size_t at, char value) {
  std::string bytes = encode(sample());
  bytes[at] = value;
  const std::uint32_t checksum = crc32c(as_bytes(std::string_view(bytes).substr(4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

TEST(CatalogFile, GoldenBytesOfTheHeader) {
  std::string fields(
      "KVSC\x01\x00\x00\x00\x06\x00\x00\x00"
      "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
      "\x01\x02\x03\x04\x05\x06\x07\x08"
      "\x11\x12\x13\x14\x15\x16\x17\x18"
      "\x21\x22\x23\x24\x25\x26\x27\x28\x32\x33\x34\x00"
      "\x00\x00\x00\x00monday",
      66);
  fields.resize(124, '\0');
  const std::string bytes = encode(sample());
  EXPECT_EQ(bytes.substr(4), fields);
  EXPECT_EQ(decode_catalog_file_header(bytes).value(), sample());
}

TEST(CatalogFile, EveryFlippedBitOfTheHeaderIsFound) {
  const std::string bytes = encode(sample());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(code_of(flipped), Code::kCorrupt) << bit;
  }
  EXPECT_EQ(code_of(bytes.substr(1)), Code::kCorrupt);
}

TEST(CatalogFile, FieldsOutOfTheirRangeAreCorruptAndLaterVersionsNewer) {
  EXPECT_EQ(code_of(with(8, 2)), Code::kNewerFormat);
  EXPECT_EQ(code_of(with(12, 65)), Code::kCorrupt) << "a name beyond its room";
  EXPECT_EQ(code_of(with(12, 5)), Code::kCorrupt) << "bytes behind the name";
  EXPECT_EQ(code_of(with(12, 0)), Code::kCorrupt) << "no name";
  EXPECT_EQ(code_of(with(60, 1)), Code::kCorrupt);
  EXPECT_EQ(code_of(with(64, '/')), Code::kCorrupt);
}

TEST(CatalogFile, APieceIsOfItsFileAndItsPlace) {
  const std::string header = encode(sample());
  CatalogFileHeader changed = sample();
  changed.position.value += 1;
  const std::string other = encode(changed), records = "records";
  const std::string piece = catalog_piece_header(header, 3, records);
  EXPECT_EQ(catalog_piece_size(piece, 3).value(), records.size());
  EXPECT_TRUE(is_catalog_piece(header, piece, records));
  EXPECT_FALSE(is_catalog_piece(other, piece, records));
  EXPECT_FALSE(is_catalog_piece(header, piece, "recordz"));
  EXPECT_EQ(catalog_piece_size(piece, 2).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog_piece_size(piece.substr(1), 3).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog_piece_size("", 0).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog_piece_size(std::string(7, '\xff') + piece.substr(7), 3).error().code,
            Code::kCorrupt)
      << "sizes are not believed";
}

}  // namespace
}  // namespace kvsyncfs
