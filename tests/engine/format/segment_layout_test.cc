#include "engine/format/segment_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

constexpr PageIdentity kIdentity{0x1122334455667788, SegmentId{0x0102}, 7};

std::string encoded(const PageIdentity& identity, const std::vector<std::uint32_t>& checksums) {
  std::string page(kPageSize, '\xff');
  encode_checksum_page(identity, 5, checksums,
                       {reinterpret_cast<std::byte*>(page.data()), page.size()});
  return page;
}

/// Changes bytes and makes the page's own checksum right again.
std::string changed(std::string page, std::size_t offset, std::uint32_t value) {
  std::memcpy(page.data() + offset, &value, sizeof value);
  const std::uint32_t checksum = crc32c(as_bytes(page).subspan(8));
  std::memcpy(page.data() + 4, &checksum, sizeof checksum);
  return page;
}

TEST(SegmentLayout, GoldenBytes) {
  const std::string page = encoded(kIdentity, {0xdeadbeef, 0x00c0ffee});
  const unsigned char head[] = {
      'K',  'V',  'S',  'B',  0x48, 0xc0, 0xff, 0x52,  // magic, checksum
      1,    0,    0,    0,    2,    0,    0,    0,     // version, data pages
      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // volume tag
      0x02, 0x01, 0,    0,    0,    0,    0,    0,     // segment
      7,    0,    0,    0,    0,    0,    0,    0,     // page
      5,    0,    0,    0,    0,    0,    0,    0,     // synced pages
  };
  std::string expected(reinterpret_cast<const char*>(head), sizeof head);
  expected.resize(96);
  expected += std::string("\xef\xbe\xad\xde\xee\xff\xc0\x00", 8);
  expected.resize(kPageSize);
  EXPECT_TRUE(page == expected);
}

TEST(SegmentLayout, PageChecksumIsSeededWithItsPlace) {
  const std::string page(kPageSize, 'x');
  const std::string seed("\x88\x77\x66\x55\x44\x33\x22\x11\x02\x01\0\0\0\0\0\0\x07\0\0\0\0\0\0\0",
                         24);
  const std::uint32_t checksum = page_checksum(kIdentity, as_bytes(page));
  EXPECT_EQ(checksum, crc32c(as_bytes(seed + page)));
  PageIdentity other = kIdentity;
  ++other.page;
  EXPECT_NE(page_checksum(other, as_bytes(page)), checksum);
  other = kIdentity;
  ++other.segment.value;
  EXPECT_NE(page_checksum(other, as_bytes(page)), checksum);
  other = kIdentity;
  ++other.volume_tag;
  EXPECT_NE(page_checksum(other, as_bytes(page)), checksum);
}

TEST(SegmentLayout, RoundTripOfEveryCount) {
  for (std::size_t count = 1; count <= kPagesPerBatchMax; count += 37) {
    std::vector<std::uint32_t> checksums(count);
    for (std::size_t i = 0; i < count; ++i)
      checksums[i] = static_cast<std::uint32_t>(i * 2654435761u);
    const std::string page = encoded(kIdentity, checksums);
    const auto batch = decode_checksum_page(kIdentity, as_bytes(page));
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->page_count, count);
    EXPECT_EQ(batch->synced_pages, 5u);
    std::vector<std::uint32_t> out(count);
    copy_checksums(as_bytes(page), out);
    EXPECT_EQ(out, checksums);
  }
}

TEST(SegmentLayout, EveryFlippedBitIsFound) {
  const std::string page = encoded(kIdentity, std::vector<std::uint32_t>(1000, 0xabcdef01));
  for (std::size_t bit = 0; bit < 8 * kPageSize; bit += 3) {
    std::string bad = page;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_checksum_page(kIdentity, as_bytes(bad))) << "bit " << bit;
  }
}

TEST(SegmentLayout, AnotherPlaceIsNotBelieved) {
  const std::string page = encoded(kIdentity, {1});
  PageIdentity other = kIdentity;
  other.page = 8;
  EXPECT_EQ(decode_checksum_page(other, as_bytes(page)).error().code, Code::kCorrupt);
  other = kIdentity;
  other.segment.value = 3;
  EXPECT_EQ(decode_checksum_page(other, as_bytes(page)).error().code, Code::kCorrupt);
  other = kIdentity;
  other.volume_tag = 3;
  EXPECT_EQ(decode_checksum_page(other, as_bytes(page)).error().code, Code::kCorrupt);
}

TEST(SegmentLayout, CountsThatCannotBeAreCorrupt) {
  const std::string page = encoded(kIdentity, {1});
  for (const std::uint32_t count : {0u, 1001u, 0xffffffffu}) {
    EXPECT_EQ(decode_checksum_page(kIdentity, as_bytes(changed(page, 12, count))).error().code,
              Code::kCorrupt);
  }
  EXPECT_TRUE(decode_checksum_page(kIdentity, as_bytes(changed(page, 12, 1000))));
  EXPECT_FALSE(decode_checksum_page(kIdentity, as_bytes(changed(page, 40, 8))));  // synced > place
}

TEST(SegmentLayout, NewerVersionIsToldApart) {
  const std::string page = encoded(kIdentity, {1});
  EXPECT_EQ(decode_checksum_page(kIdentity, as_bytes(changed(page, 8, 2))).error().code,
            Code::kNewerFormat);
  EXPECT_EQ(decode_checksum_page(kIdentity, as_bytes(changed(page, 8, 0))).error().code,
            Code::kCorrupt);
}

TEST(SegmentLayout, ShortPageIsCorrupt) {
  const std::string page = encoded(kIdentity, {1});
  EXPECT_EQ(decode_checksum_page(kIdentity, as_bytes(page).first(4095)).error().code,
            Code::kCorrupt);
  EXPECT_EQ(decode_checksum_page(kIdentity, {}).error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
