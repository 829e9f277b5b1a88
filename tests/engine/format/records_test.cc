// The catalog's records: golden bytes, round trips, and bad input.
#include "engine/format/records.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kvsyncfs {
namespace {

Inode sample() {
  Inode i;
  i.mode = 0120777;
  i.uid = 1;
  i.gid = 2;
  i.link_count = 3;
  i.size = 4;
  i.allocated_bytes = 5;
  i.device = 6;
  i.change = 7;
  i.atime = {8, 9};
  i.mtime = {-1, 10};
  i.ctime = {11, 12};
  i.birth = {13, 14};
  i.parent = {15};
  i.xattr_count = 16;
  i.target = "link";
  return i;
}

std::string hex(const std::string& s) {
  std::string out;
  for (char c : s)
    for (int shift : {4, 0})
      out.push_back("0123456789abcdef"[static_cast<unsigned char>(c) >> shift & 15]);
  return out;
}

TEST(RecordFormat, GoldenBytesOfInode) {
  EXPECT_EQ(hex(encode(sample())),
            "01"  // version
            "ffa10000"
            "01000000"
            "02000000"
            "03000000"  // mode, uid, gid, link count
            "0400000000000000"
            "0500000000000000"  // size, allocated bytes
            "0600000000000000"
            "0700000000000000"          // device, change
            "080000000000000009000000"  // atime
            "ffffffffffffffff0a000000"  // mtime
            "0b000000000000000c000000"  // ctime
            "0d000000000000000e000000"  // birth
            "0f00000000000000"
            "10000000"  // parent, attributes
            "04000000"
            "6c696e6b");  // target
  EXPECT_EQ(decode_inode(encode(sample())).value(), sample());
}

TEST(RecordFormat, GoldenBytesOfSegment) {
  SegmentRecord record{SegmentState::kSealed, 0x1000, 0x0203};
  EXPECT_EQ(hex(encode(record)),
            "0102"
            "0010000000000000"
            "0302000000000000");
  EXPECT_EQ(decode_segment(encode(record)).value(), record);
}

TEST(RecordFormat, GoldenBytesOfPlacedSegment) {
  const SegmentRecord record{SegmentState::kOpen, 0, 1, {5}, {{5}, {0x0102}}};
  const std::string expected(
      "\x02\x01\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
      "\x05\0\0\0\0\0\0\0\x02\x05\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0",
      43);
  EXPECT_EQ(encode(record), expected);
  EXPECT_EQ(decode_segment(expected).value(), record);
  std::string not_among = expected;
  not_among[18] = 6;  // the owner
  EXPECT_FALSE(decode_segment(not_among));
}

SessionRecord session() { return {{1025}, {2}, 3, 5000, {4}, 5}; }

TEST(RecordFormat, GoldenBytesOfSession) {
  EXPECT_EQ(hex(encode(session())),
            "01"
            "0104000000000000"
            "0200000000000000"  // session, incarnation
            "0300000000000000"
            "88130000"  // features, lease
            "0400000000000000"
            "0500000000000000");  // ended, last request
  EXPECT_EQ(decode_session(encode(session())).value(), session());
}

TEST(RecordFormat, ASessionThatEndedBeforeItJoinedIsCorrupt) {
  SessionRecord record = session();
  record.session = {5 * 1024};
  EXPECT_EQ(decode_session(encode(record)).error().code, Code::kCorrupt);
  record.ended = {};
  EXPECT_TRUE(decode_session(encode(record)));
}

TEST(RecordFormat, GoldenBytesOfOrphan) {
  EXPECT_EQ(hex(encode(OrphanRecord{})), "01");
  EXPECT_EQ(decode_orphan(encode(OrphanRecord{})).value(), OrphanRecord{});
  const OrphanRecord held{{{{5}, false}, {{0x0607}, true}}};
  EXPECT_EQ(hex(encode(held)),
            "02"
            "02000000"            // holders
            "050000000000000000"  // session, has not said anything
            "070600000000000001");
  EXPECT_EQ(decode_orphan(encode(held)).value(), held);
}

TEST(RecordFormat, HoldersAreInOrderAndSayYesOrNo) {
  const std::string twice = encode(OrphanRecord{{{{5}, false}, {{5}, true}}});
  EXPECT_EQ(decode_orphan(twice).error().code, Code::kCorrupt);
  std::string maybe = encode(OrphanRecord{{{{5}, false}}});
  maybe.back() = 2;
  EXPECT_EQ(decode_orphan(maybe).error().code, Code::kCorrupt);
  const std::string nobody("\x02\0\0\0\0", 5);
  EXPECT_EQ(decode_orphan(nobody).error().code, Code::kCorrupt);
}

TEST(RecordFormat, GoldenBytesOfHold) {
  const HoldRecord hold{{7}, {1, 2}, {3, 4}, {{{0x1c00}, 5}, {{0x1c01}, 6}}};
  EXPECT_EQ(hex(encode(hold)),
            "01"
            "0700000000000000"          // position
            "010000000000000002000000"  // taken
            "030000000000000004000000"  // expires
            "02000000"                  // ends
            "001c0000000000000500000000000000"
            "011c0000000000000600000000000000");
  EXPECT_EQ(decode_hold(encode(hold)).value(), hold);
}

TEST(RecordFormat, CutShortOrTooLongIsCorrupt) {
  for (const std::string& encoded : {encode(sample())}) {
    for (std::size_t size = 0; size < encoded.size(); ++size)
      EXPECT_EQ(decode_inode(encoded.substr(0, size)).error().code, Code::kCorrupt);
    EXPECT_EQ(decode_inode(encoded + "x").error().code, Code::kCorrupt);
  }
  std::string segment = encode(SegmentRecord{});
  for (std::size_t size = 0; size < segment.size(); ++size)
    EXPECT_EQ(decode_segment(segment.substr(0, size)).error().code, Code::kCorrupt);
  EXPECT_EQ(decode_segment(segment + "x").error().code, Code::kCorrupt);
  const std::string orphan = encode(OrphanRecord{{{{5}, false}, {{6}, true}}});
  for (std::size_t size = 0; size < orphan.size(); ++size)
    EXPECT_EQ(decode_orphan(orphan.substr(0, size)).error().code, Code::kCorrupt);
  EXPECT_EQ(decode_orphan(orphan + "x").error().code, Code::kCorrupt);
  const std::string of_session = encode(session());
  for (std::size_t size = 0; size < of_session.size(); ++size)
    EXPECT_EQ(decode_session(of_session.substr(0, size)).error().code, Code::kCorrupt);
  EXPECT_EQ(decode_session(of_session + "x").error().code, Code::kCorrupt);
}

TEST(RecordFormat, UnknownVersionOrStateIsCorrupt) {
  std::string inode = encode(sample()), segment = encode(SegmentRecord{});
  inode[0] = 2;
  EXPECT_EQ(decode_inode(inode).error().code, Code::kCorrupt);
  for (char state : {'\0', '\3'}) {
    segment[1] = state;
    EXPECT_EQ(decode_segment(segment).error().code, Code::kCorrupt);
  }
}

TEST(RecordFormat, TargetLongerThanASymlinkIsCorrupt) {
  Inode inode = sample();
  inode.target = std::string(kSymlinkSizeMax, 't');
  EXPECT_TRUE(decode_inode(encode(inode)));
  inode.target.push_back('t');
  EXPECT_EQ(decode_inode(encode(inode)).error().code, Code::kCorrupt);
}

RC_GTEST_PROP(RecordFormat, EveryInodeComesBackAsItWas, ()) {
  Inode i;
  i.mode = *rc::gen::arbitrary<std::uint32_t>();
  i.size = *rc::gen::arbitrary<std::uint64_t>();
  i.change = *rc::gen::arbitrary<std::uint64_t>();
  i.mtime = {*rc::gen::arbitrary<std::int64_t>(),
             *rc::gen::inRange<std::uint32_t>(0, 1'000'000'000)};
  i.parent = {*rc::gen::arbitrary<std::uint64_t>()};
  i.target = *rc::gen::arbitrary<std::string>();
  auto back = decode_inode(encode(i));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == i);
}

}  // namespace
}  // namespace kvsyncfs
