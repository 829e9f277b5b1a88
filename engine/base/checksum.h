// CRC32C (Castagnoli, RFC 3720 appendix B.4), by Intel ISA-L. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvsyncfs {

/// CRC32C of `bytes`, continued from `seed` (0 to start). crc32c("123456789") == 0xE3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace kvsyncfs
