#include "engine/format/peer_message.h"

#include <gtest/gtest.h>

#include "engine/format/segment_layout.h"

namespace kvsyncfs {
namespace {

TEST(PeerMessage, HeadsComeBack) {
  const Acknowledge acknowledge{{7}, {5}, 9, {2}, {3}};
  EXPECT_EQ(decode_acknowledge(encode(acknowledge)).value(), acknowledge);
  EXPECT_EQ(decode_batch_place(encode(BatchPlace{{3}, 9})).value(), (BatchPlace{{3}, 9}));
  EXPECT_EQ(decode_pages_wanted(encode(PagesWanted{{3}, 9, 1000})).value(),
            (PagesWanted{{3}, 9, 1000}));
  EXPECT_EQ(decode_snapshot_wanted(encode(SnapshotWanted{{9}})).value(), SnapshotWanted{{9}});
  const SnapshotOpened opened{3, {9}, 100, 5, 77, "key"};
  EXPECT_EQ(decode_snapshot_opened(encode(opened)).value(), opened);
  const SnapshotOpened without{3, {9}, 100, 0, 0, ""};
  EXPECT_EQ(decode_snapshot_opened(encode(without)).value(), without);
  EXPECT_EQ(decode_records_wanted(encode(RecordsWanted{3, "k"})).value(), (RecordsWanted{3, "k"}));
  EXPECT_EQ(decode_snapshot_piece(encode(SnapshotPiece{8})).value(), SnapshotPiece{8});
  EXPECT_EQ(decode_batch_span(encode(BatchSpan{9, 1001})).value(), (BatchSpan{9, 1001}));
  const std::vector<std::uint32_t> checksums{1, 0xffffffff, 3};
  EXPECT_EQ(decode_page_checksums(encode_page_checksums(checksums)).value(), checksums);
}

TEST(PeerMessage, GoldenBytes) {
  const std::string golden("\x02\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x03\0\0\0", 20);
  EXPECT_EQ(encode(PagesWanted{{0x0102}, 5, 3}), golden);
  const std::string opened(
      "\x03\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0"
      "\x05\0\0\0\0\0\0\0\x4d\0\0\0\0\0\0\0\x03\0\0\0key",
      47);
  EXPECT_EQ(encode(SnapshotOpened{3, {9}, 100, 5, 77, "key"}), opened);
  EXPECT_EQ(encode(RecordsWanted{3, "k"}), std::string("\x03\0\0\0\0\0\0\0\x01\0\0\0k", 13));
  EXPECT_EQ(encode(BatchSpan{0x0102, 3}), std::string("\x02\x01\0\0\0\0\0\0\x03\0\0\0", 12));
}

TEST(PeerMessage, BadHeadsAreRefused) {
  const std::string good = encode(PagesWanted{{3}, 9, 1});
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode_pages_wanted(std::string_view(good).substr(0, size)));
  EXPECT_FALSE(decode_pages_wanted(good + "x"));
  EXPECT_FALSE(decode_pages_wanted(encode(PagesWanted{{3}, 9, 0})));
  EXPECT_FALSE(decode_pages_wanted(encode(PagesWanted{{3}, 9, kPagesPerBatchMax + 1})));
  EXPECT_FALSE(decode_pages_wanted(encode(PagesWanted{kNoSegment, 9, 1})));
  EXPECT_FALSE(decode_batch_place(encode(BatchPlace{kNoSegment, 9})));
  for (const std::uint32_t count : {0u, 1u, 1002u})
    EXPECT_FALSE(decode_batch_span(encode(BatchSpan{9, count}))) << count;
  EXPECT_FALSE(decode_batch_span(encode(BatchSpan{9, 5}) + "x"));
  EXPECT_FALSE(decode_acknowledge("123456781234567"));
  const std::string opened = encode(SnapshotOpened{3, {9}, 100, 5, 77, "key"});
  for (std::size_t size = 0; size < opened.size(); ++size)
    EXPECT_FALSE(decode_snapshot_opened(std::string_view(opened).substr(0, size)));
  EXPECT_FALSE(decode_snapshot_opened(encode(SnapshotOpened{0, {9}, 100, 5, 77, "key"})));
  EXPECT_FALSE(decode_snapshot_opened(encode(SnapshotOpened{3, {9}, 100, 5, 77, ""})));
  EXPECT_FALSE(decode_snapshot_opened(encode(SnapshotOpened{3, {9}, 100, 0, 77, "key"})));
  EXPECT_FALSE(
      decode_snapshot_opened(encode(SnapshotOpened{3, {9}, 1, 5, 7, std::string(513, 'k')})));
  EXPECT_FALSE(decode_records_wanted(encode(RecordsWanted{3, std::string(513, 'k')})));
  EXPECT_FALSE(decode_records_wanted("1234567"));
  EXPECT_FALSE(decode_snapshot_wanted("1234567"));
  EXPECT_FALSE(decode_snapshot_piece("12345"));
  EXPECT_FALSE(decode_page_checksums(""));
  EXPECT_FALSE(decode_page_checksums("12345"));
  EXPECT_FALSE(decode_page_checksums(std::string(4 * (kPagesPerBatchMax + 1), '\0')));
}

}  // namespace
}  // namespace kvsyncfs
