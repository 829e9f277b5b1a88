#include "engine/format/frame.h"

#include <cassert>

#include "engine/base/checksum.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kChecksumOffset = kFrameHeaderSize - 4;

struct Limits {
  std::uint32_t head_size_max;
  std::uint32_t body_size_max;
};

Limits limits_of(FrameType type) {
  switch (type) {
    case FrameType::kHello:
    case FrameType::kChallenge:
    case FrameType::kProof:
    case FrameType::kWelcome:
    case FrameType::kRefuse:
    case FrameType::kRead:
      return {kHandshakeHeadSizeMax, 0};
    case FrameType::kRequest:
    case FrameType::kReply:
      return {kFrameHeadSizeMax, kFrameBodySizeMax};
    case FrameType::kPing:
    case FrameType::kPong:
      break;
  }
  return {0, 0};
}

bool in_range(const FrameHeader& h) {
  if (h.type < FrameType::kHello || h.type > FrameType::kReply || h.sequence == 0) return false;
  const Limits limits = limits_of(h.type);
  if (h.head_size > limits.head_size_max || h.body_size > limits.body_size_max) return false;
  const bool numbered = h.type >= FrameType::kRequest;
  return (h.request != 0) == numbered;
}

void put(Writer& writer, const auto& array) {
  for (std::uint8_t byte : array) writer.u8(byte);
}

void take(Reader& reader, auto& array) {
  for (std::uint8_t& byte : array) byte = reader.u8();
}

}  // namespace

std::string encode(const FrameHeader& header) {
  assert(in_range(header));
  std::string bytes;
  bytes.reserve(kFrameHeaderSize);
  Writer writer(bytes);
  writer.raw(kFrameMagic);
  writer.u16(kProtocolMajor);
  writer.u16(static_cast<std::uint16_t>(header.type));
  writer.u64(header.sequence);
  writer.u64(header.request);
  writer.u32(header.head_size);
  writer.u32(header.body_size);
  writer.u16(header.kind);
  writer.u16(0);
  writer.u32(header.timeout_us);
  writer.u32(0);
  writer.u32(crc32c(as_bytes(bytes)));
  return bytes;
}

Result<FrameHeader> decode_frame_header(std::string_view bytes) {
  if (bytes.size() < kFrameHeaderSize) return Error(Code::kCorrupt, "frame: short header");
  Reader reader(bytes.substr(0, kFrameHeaderSize));
  if (reader.raw(kFrameMagic.size()) != kFrameMagic)
    return Error(Code::kCorrupt, "frame: no magic");
  // Before the checksum: another major version may keep it elsewhere.
  const std::uint16_t major = reader.u16();
  if (major != kProtocolMajor)
    return Error(Code::kNewerFormat, "protocol version " + std::to_string(major) + ", not " +
                                         std::to_string(kProtocolMajor));
  if (Reader(bytes.substr(kChecksumOffset)).u32() !=
      crc32c(as_bytes(bytes.substr(0, kChecksumOffset))))
    return Error(Code::kCorrupt, "frame: bad checksum of the header");

  FrameHeader h;
  h.type = static_cast<FrameType>(reader.u16());
  h.sequence = reader.u64();
  h.request = reader.u64();
  h.head_size = reader.u32();
  h.body_size = reader.u32();
  h.kind = reader.u16();
  const bool zero = reader.u16() == 0;
  h.timeout_us = reader.u32();
  if (!zero || reader.u32() != 0 || !in_range(h))
    return Error(Code::kCorrupt, "frame: header field out of range");
  return h;
}

FrameTrailer make_trailer(std::uint32_t content_checksum, std::uint16_t code) {
  std::string rest;
  Writer writer(rest);
  writer.u16(code);
  writer.u16(0);
  return {crc32c(as_bytes(rest), content_checksum), code};
}

std::string encode(const FrameTrailer& trailer) {
  std::string bytes;
  bytes.reserve(kFrameTrailerSize);
  Writer writer(bytes);
  writer.u32(trailer.checksum);
  writer.u16(trailer.code);
  writer.u16(0);
  return bytes;
}

Result<FrameTrailer> decode_frame_trailer(std::string_view bytes) {
  Reader reader(bytes);
  FrameTrailer trailer;
  trailer.checksum = reader.u32();
  trailer.code = reader.u16();
  if (reader.u16() != 0 || !reader.done()) return Error(Code::kCorrupt, "frame: bad trailer");
  return trailer;
}

std::string encode(const Hello& hello) {
  std::string head;
  Writer writer(head);
  writer.u16(hello.minor);
  put(writer, hello.volume);
  writer.u64(hello.node.value);
  writer.u64(hello.wanted.value);
  writer.u64(hello.incarnation.value);
  put(writer, hello.nonce);
  writer.u64(hello.secret_id);
  return head;
}

Result<Hello> decode_hello(std::string_view head) {
  Reader reader(head);
  Hello hello;
  hello.minor = reader.u16();
  take(reader, hello.volume);
  hello.node.value = reader.u64();
  hello.wanted.value = reader.u64();
  hello.incarnation.value = reader.u64();
  take(reader, hello.nonce);
  hello.secret_id = reader.u64();
  if (!reader.ok()) return Error(Code::kCorrupt, "hello: too short");
  return hello;
}

std::string encode(const Challenge& challenge) {
  std::string head;
  Writer writer(head);
  writer.u16(challenge.minor);
  writer.u64(challenge.node.value);
  writer.u64(challenge.incarnation.value);
  put(writer, challenge.nonce);
  return head;
}

Result<Challenge> decode_challenge(std::string_view head) {
  Reader reader(head);
  Challenge challenge;
  challenge.minor = reader.u16();
  challenge.node.value = reader.u64();
  challenge.incarnation.value = reader.u64();
  take(reader, challenge.nonce);
  if (!reader.ok()) return Error(Code::kCorrupt, "challenge: too short");
  return challenge;
}

std::string encode(const Welcome& welcome) {
  std::string head;
  Writer writer(head);
  writer.u32(welcome.calls_max);
  writer.u32(welcome.bytes_max);
  return head;
}

Result<Welcome> decode_welcome(std::string_view head) {
  Reader reader(head);
  Welcome welcome;
  welcome.calls_max = reader.u32();
  welcome.bytes_max = reader.u32();
  if (!reader.ok() || welcome.calls_max == 0)
    return Error(Code::kCorrupt, "welcome: too short, or no calls allowed");
  return welcome;
}

std::string encode(const ReadRange& range) {
  std::string head;
  Writer writer(head);
  writer.u64(range.key);
  writer.u64(range.offset);
  writer.u32(range.length);
  return head;
}

Result<ReadRange> decode_read_range(std::string_view head) {
  Reader reader(head);
  ReadRange range;
  range.key = reader.u64();
  range.offset = reader.u64();
  range.length = reader.u32();
  if (!reader.done() || range.length == 0 || range.length > kFrameBodySizeMax)
    return Error(Code::kCorrupt, "read: bad range");
  return range;
}

std::uint16_t to_wire(Code code) { return static_cast<std::uint16_t>(code); }

Code from_wire(std::uint16_t number) {
  return number >= 1 && number <= to_wire(kLastCode) ? static_cast<Code>(number) : Code::kIo;
}

}  // namespace kvsyncfs
