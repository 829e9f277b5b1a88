#include "engine/format/frame.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/base/checksum.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

FrameHeader a_request() {
  FrameHeader h;
  h.type = FrameType::kRequest;
  h.kind = 0x0203;
  h.sequence = 0x1122334455667788;
  h.request = 9;
  h.head_size = 5;
  h.body_size = 4096;
  h.timeout_us = 15'000'000;
  return h;
}

/// Changes a field and makes the header's checksum right again.
template <typename T>
std::string changed(std::string header, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    header[offset + i] = static_cast<char>(value >> (8 * i));
  header.resize(44);
  Writer(header).u32(crc32c(as_bytes(header)));
  return header;
}

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (int value : values) bytes += static_cast<char>(value);
  return bytes;
}

TEST(Frame, GoldenHeader) {
  const std::string expected = bytes_of({
      'K',  'V',  'S',  'F',  1,    0,    8,    0,     // magic, major version, type
      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // sequence
      9,    0,    0,    0,    0,    0,    0,    0,     // request
      5,    0,    0,    0,    0,    0x10, 0,    0,     // sizes
      3,    2,    0,    0,    0xc0, 0xe1, 0xe4, 0,     // kind, zeros, timeout
      0,    0,    0,    0,    0x28, 0xaf, 0xc6, 0xa2,  // zeros, checksum
  });
  EXPECT_EQ(encode(a_request()), expected);
  EXPECT_EQ(decode_frame_header(expected).value(), a_request());
}

TEST(Frame, GoldenTrailer) {
  const FrameTrailer trailer{0xdeadbeef, 21};
  EXPECT_EQ(encode(trailer), bytes_of({0xef, 0xbe, 0xad, 0xde, 21, 0, 0, 0}));
  EXPECT_EQ(decode_frame_trailer(encode(trailer)).value(), trailer);
}

TEST(Frame, TheTrailersChecksumCoversItsErrorNumber) {
  const std::string content = "head and body";
  const FrameTrailer whole = make_trailer(crc32c(as_bytes(content)), 0);
  const FrameTrailer stale = make_trailer(crc32c(as_bytes(content)), 21);
  EXPECT_EQ(whole.checksum, crc32c(as_bytes(content + std::string(4, '\0'))));
  EXPECT_EQ(stale.checksum, crc32c(as_bytes(content + bytes_of({21, 0, 0, 0}))));
  EXPECT_EQ(stale.code, 21);
}

TEST(Frame, GoldenHeads) {
  Hello hello;
  hello.minor = 7;
  for (std::size_t i = 0; i < 16; ++i) hello.volume[i] = static_cast<std::uint8_t>(i + 1);
  hello.node = {3};
  hello.wanted = {4};
  hello.incarnation = {0x0506};
  hello.nonce.fill(0xaa);
  hello.secret_id = 0x0708;
  EXPECT_EQ(encode(hello),
            bytes_of({7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 3, 0, 0,
                      0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0,  0,  6,  5,  0,  0,  0,  0, 0, 0}) +
                std::string(32, '\xaa') + bytes_of({8, 7, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(decode_hello(encode(hello)).value(), hello);

  Challenge challenge;
  challenge.minor = 1;
  challenge.node = {4};
  challenge.incarnation = {2};
  challenge.nonce.fill(0xbb);
  EXPECT_EQ(encode(challenge), bytes_of({1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}) +
                                   std::string(32, '\xbb'));
  EXPECT_EQ(decode_challenge(encode(challenge)).value(), challenge);

  const Welcome welcome{256, 0x01020304};
  EXPECT_EQ(encode(welcome), bytes_of({0, 1, 0, 0, 4, 3, 2, 1}));
  EXPECT_EQ(decode_welcome(encode(welcome)).value(), welcome);

  const ReadRange range{0x0102030405060708, 4096, 8192};
  EXPECT_EQ(encode(range),
            bytes_of({8, 7, 6, 5, 4, 3, 2, 1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0}));
  EXPECT_EQ(decode_read_range(encode(range)).value(), range);
}

TEST(Frame, EveryFlippedBitOfAHeaderIsFound) {
  const std::string header = encode(a_request());
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    std::string bad = header;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_frame_header(bad)) << "bit " << bit;
  }
}

TEST(Frame, AnotherMajorVersionIsToldWhateverFollows) {
  std::string header = encode(a_request());
  header[4] = 2;
  EXPECT_EQ(decode_frame_header(header).error().code, Code::kNewerFormat);
  header[4] = header[5] = '\xff';
  EXPECT_EQ(decode_frame_header(header).error().code, Code::kNewerFormat);
}

TEST(Frame, SizesBeyondTheLimitOfTheTypeAreCorrupt) {
  const std::string header = encode(a_request());
  EXPECT_TRUE(decode_frame_header(changed(header, 24, kFrameHeadSizeMax)));
  EXPECT_FALSE(decode_frame_header(changed(header, 24, kFrameHeadSizeMax + 1)));
  EXPECT_TRUE(decode_frame_header(changed(header, 28, kFrameBodySizeMax)));
  EXPECT_FALSE(decode_frame_header(changed(header, 28, kFrameBodySizeMax + 1)));
  EXPECT_FALSE(decode_frame_header(changed(header, 28, 0xffffffffu)));

  FrameHeader hello;
  hello.type = FrameType::kHello;
  hello.sequence = 1;
  hello.head_size = kHandshakeHeadSizeMax;
  EXPECT_TRUE(decode_frame_header(encode(hello)));
  EXPECT_FALSE(decode_frame_header(changed(encode(hello), 24, kHandshakeHeadSizeMax + 1)));
  EXPECT_FALSE(decode_frame_header(changed(encode(hello), 28, 1u)));

  FrameHeader ping;
  ping.sequence = 1;
  EXPECT_TRUE(decode_frame_header(encode(ping)));
  EXPECT_FALSE(decode_frame_header(changed(encode(ping), 24, 1u)));
}

TEST(Frame, FieldsThatCannotBeAreCorrupt) {
  const std::string header = encode(a_request());
  for (const std::uint16_t type : std::initializer_list<std::uint16_t>{0, 11, 0xffff})
    EXPECT_FALSE(decode_frame_header(changed(header, 6, type))) << type;
  EXPECT_FALSE(decode_frame_header(changed(header, 8, std::uint64_t{0})));   // sequence
  EXPECT_FALSE(decode_frame_header(changed(header, 16, std::uint64_t{0})));  // request
  EXPECT_FALSE(decode_frame_header(changed(header, 34, std::uint16_t{1})));
  EXPECT_FALSE(decode_frame_header(changed(header, 40, 1u)));
}

TEST(Frame, ShortPartsAreCorrupt) {
  const std::string header = encode(a_request());
  for (std::size_t size = 0; size < header.size(); ++size)
    EXPECT_EQ(decode_frame_header(header.substr(0, size)).error().code, Code::kCorrupt);
  EXPECT_FALSE(decode_frame_trailer(std::string(7, '\0')));
  EXPECT_FALSE(decode_frame_trailer(std::string(9, '\0')));
  EXPECT_FALSE(decode_hello(encode(Hello{}).substr(1)));
  EXPECT_FALSE(decode_challenge(encode(Challenge{}).substr(1)));
  EXPECT_FALSE(decode_welcome(encode(Welcome{1, 1}).substr(1)));
  EXPECT_FALSE(decode_read_range(encode(ReadRange{1, 0, 1}).substr(1)));
}

TEST(Frame, LaterMinorVersionsMayAddToTheHandshakeOnly) {
  EXPECT_TRUE(decode_hello(encode(Hello{}) + "more"));
  EXPECT_TRUE(decode_challenge(encode(Challenge{}) + "more"));
  EXPECT_TRUE(decode_welcome(encode(Welcome{1, 1}) + "more"));
  EXPECT_FALSE(decode_read_range(encode(ReadRange{1, 0, 1}) + "more"));
}

TEST(Frame, ReadsOfNothingOrTooMuchAreCorrupt) {
  EXPECT_FALSE(decode_read_range(encode(ReadRange{1, 0, 0})));
  EXPECT_TRUE(decode_read_range(encode(ReadRange{1, 0, kFrameBodySizeMax})));
  EXPECT_FALSE(decode_read_range(encode(ReadRange{1, 0, kFrameBodySizeMax + 1})));
}

TEST(Frame, CodesKeepTheirNumbers) {
  EXPECT_EQ(to_wire(Code::kNotFound), 1);
  EXPECT_EQ(to_wire(Code::kStale), 21);
  EXPECT_EQ(to_wire(Code::kNewerFormat), 26);
  EXPECT_EQ(to_wire(Code::kShutdown), 28);
  EXPECT_EQ(to_wire(Code::kDisconnected), 30);
  for (std::uint16_t number = 1; number <= to_wire(kLastCode); ++number)
    EXPECT_EQ(to_wire(from_wire(number)), number);
  EXPECT_EQ(from_wire(0), Code::kIo);
  EXPECT_EQ(from_wire(999), Code::kIo);
}

}  // namespace
}  // namespace kvsyncfs
