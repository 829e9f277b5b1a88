#include "engine/format/superblock.h"

#include <cassert>

#include "engine/base/checksum.h"
#include "engine/base/ids.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kMagic = "KVSYNCFS";
constexpr std::size_t kChecksumSize = 4;

bool in_range(const Superblock& s) {
  return s.version > 0 && s.size_bytes > 0 && s.segment_size_bytes > 0 &&
         s.segment_size_bytes % kPageSize == 0 && s.log_file_size_bytes > 0 &&
         s.log_file_size_bytes % kPageSize == 0 && s.log_file_count_max > 0;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr bool dash_before(std::size_t byte_index) {
  return byte_index == 4 || byte_index == 6 || byte_index == 8 || byte_index == 10;
}

}  // namespace

std::uint64_t Superblock::volume_tag() const {
  std::uint64_t tag = 0;
  for (std::size_t i = 0; i < sizeof tag; ++i) tag |= std::uint64_t{uuid[i]} << (8 * i);
  return tag;
}

std::string uuid_text(const Uuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (dash_before(i)) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

Uuid draw_uuid(Random& random) {
  Uuid uuid;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t bits = random.next();
    for (std::size_t i = 0; i < 8; ++i)
      uuid[8 * half + i] = static_cast<std::uint8_t>(bits >> (8 * i));
  }
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0f) | 0x40);
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

std::string encode(const Superblock& s) {
  assert(s.label.size() <= kLabelSizeMax);
  std::string body;
  Writer writer(body);
  writer.raw(kMagic);
  writer.u32(s.version);
  for (std::uint8_t byte : s.uuid) writer.u8(byte);
  writer.u64(s.compatible);
  writer.u64(s.read_only_compatible);
  writer.u64(s.incompatible);
  writer.u64(s.size_bytes);
  writer.u64(s.segment_size_bytes);
  writer.u64(s.log_file_size_bytes);
  writer.u32(s.log_file_count_max);
  writer.u32(static_cast<std::uint32_t>(s.label.size()));
  writer.i64(s.created_seconds);
  writer.raw(s.label);
  body.resize(kSuperblockSize - kChecksumSize);

  std::string bytes;
  Writer(bytes).u32(crc32c(as_bytes(body)));
  return bytes + body;
}

Result<Superblock> decode_superblock(std::string_view bytes) {
  Reader reader(bytes.substr(0, kSuperblockSize));
  const std::uint32_t checksum = reader.u32();
  const bool magic = reader.raw(kMagic.size()) == kMagic;
  if (!magic) return Code::kNotFormatted;
  if (bytes.size() < kSuperblockSize) return Error(Code::kCorrupt, "superblock: too short");
  if (crc32c(as_bytes(bytes.substr(kChecksumSize, kSuperblockSize - kChecksumSize))) != checksum)
    return Error(Code::kCorrupt, "superblock: bad checksum");

  Superblock s;
  s.version = reader.u32();
  for (std::uint8_t& byte : s.uuid) byte = reader.u8();
  s.compatible = reader.u64();
  s.read_only_compatible = reader.u64();
  s.incompatible = reader.u64();
  if (s.version > kFormatVersion || (s.incompatible & ~kKnownIncompatible) != 0)
    return Error(Code::kNewerFormat, "superblock: made by a newer version");
  s.size_bytes = reader.u64();
  s.segment_size_bytes = reader.u64();
  s.log_file_size_bytes = reader.u64();
  s.log_file_count_max = reader.u32();
  const std::uint32_t label_size = reader.u32();
  s.created_seconds = reader.i64();
  if (label_size > kLabelSizeMax) return Error(Code::kCorrupt, "superblock: label too long");
  s.label = reader.raw(label_size);
  if (!reader.ok() || !in_range(s)) return Error(Code::kCorrupt, "superblock: field out of range");
  return s;
}

std::string encode_superblock_file(const Superblock& superblock) {
  const std::string copy = encode(superblock);
  return copy + copy;
}

Result<Superblock> decode_superblock_file(std::string_view bytes) {
  Result<Superblock> first = decode_superblock(bytes);
  if (first || first.error().code == Code::kNewerFormat || bytes.size() <= kSuperblockSize)
    return first;
  Result<Superblock> second = decode_superblock(bytes.substr(kSuperblockSize));
  // Where neither copy is good, a copy that was a superblock once tells more than one that never
  // was.
  if (second || first.error().code == Code::kNotFormatted) return second;
  return first;
}

Result<Uuid> parse_uuid(std::string_view text) {
  const auto bad = [&] { return Error(Code::kInvalid, "UUID '" + std::string(text) + "'"); };
  Uuid uuid{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (dash_before(i) && (at >= text.size() || text[at++] != '-')) return bad();
    if (text.size() - at < 2) return bad();
    const int high = hex_digit(text[at]), low = hex_digit(text[at + 1]);
    if (high < 0 || low < 0) return bad();
    uuid[i] = static_cast<std::uint8_t>(high * 16 + low);
    at += 2;
  }
  if (at != text.size()) return bad();
  return uuid;
}

}  // namespace kvsyncfs
