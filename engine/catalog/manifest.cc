#include "engine/catalog/manifest.h"

#include <optional>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kBlockSize = 32u << 10;
constexpr std::size_t kHeaderSize = 7;  // checksum 4, length 2, type 1
constexpr std::size_t kTypeAt = 6;
enum Type : unsigned char { kNothing = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::uint32_t little_endian(Bytes bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

/// A checksum of bytes that hold checksums is stored turned.
std::uint32_t stored_checksum(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/// Of the piece at the begin of `rest`, if it is good.
std::optional<std::size_t> piece_size(Bytes rest) {
  const std::size_t length = little_endian(rest.subspan(4, 2));
  if (kHeaderSize + length > rest.size()) return {};
  const std::uint32_t crc = crc32c(rest.subspan(kTypeAt, 1 + length));
  if (stored_checksum(crc) != little_endian(rest.first(4))) return {};
  return kHeaderSize + length;
}

}  // namespace

Result<std::uint64_t> whole_manifest_bytes(File& file) {
  std::vector<std::byte> block(kBlockSize);
  std::uint64_t whole = 0;
  for (std::uint64_t begin = 0;; begin += kBlockSize) {
    KVSYNCFS_ASSIGN(const std::size_t count, file.read_at(begin, block));
    std::size_t at = 0;
    while (at + kHeaderSize <= count) {
      const auto rest = Bytes(block).first(count).subspan(at);
      const auto type = static_cast<unsigned char>(rest[kTypeAt]);
      if (type > kLast) {
        KVSYNCFS_ASSIGN(const std::uint64_t size, file.size());
        return size;
      }
      const auto size = piece_size(rest);
      if (!size || type == kNothing) return whole;
      at += *size;
      if (type == kFull || type == kLast) whole = begin + at;
    }
    if (count < kBlockSize) return whole;
  }
}

}  // namespace kvsyncfs
