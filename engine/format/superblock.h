// The superblock: what a store is, how it was made, and who may open it. kvsyncfs-format(5).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/env/random.h"

namespace kvsyncfs {

inline constexpr std::size_t kSuperblockSize = 4096;                     ///< bytes of one copy
inline constexpr std::size_t kSuperblockFileSize = 2 * kSuperblockSize;  ///< two equal copies
inline constexpr std::size_t kLabelSizeMax = 64;                         ///< bytes
inline constexpr std::uint32_t kFormatVersion = 1;
// Feature masks: an unknown bit in `incompatible` refuses the store, one in `read_only_compatible`
// allows only -o ro, one in `compatible` is ignored.
inline constexpr std::uint64_t kIncompatibleCluster = 1;  ///< a node of a cluster
inline constexpr std::uint64_t kKnownIncompatible = kIncompatibleCluster;
inline constexpr std::uint64_t kKnownReadOnlyCompatible = 0;

using Uuid = std::array<std::uint8_t, 16>;
std::string uuid_text(const Uuid& uuid);  ///< 8-4-4-4-12
Uuid draw_uuid(Random& random);           ///< version 4 of RFC 4122

struct Superblock {
  Uuid uuid{};
  std::string label;  ///< at most kLabelSizeMax bytes
  std::uint32_t version = kFormatVersion;
  std::uint64_t compatible = 0, read_only_compatible = 0, incompatible = 0;
  std::uint64_t size_bytes = 0;  ///< for segments
  std::uint64_t segment_size_bytes = 0;
  std::uint64_t log_file_size_bytes = 0;
  std::uint32_t log_file_count_max = 0;
  std::int64_t created_seconds = 0;
  bool operator==(const Superblock&) const = default;

  std::uint64_t volume_tag() const;  ///< first 8 bytes of the UUID, little-endian
  std::string uuid_text() const { return kvsyncfs::uuid_text(uuid); }
};

/// Exactly kSuperblockSize bytes.
std::string encode(const Superblock& superblock);
/// The checksum is verified before any other field is believed. Bytes after the copy are ignored.
/// Errors: kNotFormatted (no magic), kCorrupt (short, checksum, field out of range), kNewerFormat
/// (unknown incompatible feature, or a newer version).
Result<Superblock> decode_superblock(std::string_view bytes);
/// What STORE/superblock holds: two equal copies, kSuperblockFileSize bytes.
std::string encode_superblock_file(const Superblock& superblock);
/// The first good copy. Errors: those of decode_superblock.
Result<Superblock> decode_superblock_file(std::string_view bytes);
/// Errors: kInvalid.
Result<Uuid> parse_uuid(std::string_view text);

}  // namespace kvsyncfs
