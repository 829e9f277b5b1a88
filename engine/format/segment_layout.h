// Byte layout of segment files: the checksum page that heads each batch. Field table:
// kvsyncfs-format(5), "Segments".
//
// offset  bytes  meaning (numbers are little-endian)
//      0      4  magic "KVSB"
//      4      4  CRC32C of bytes 8 to 4095 of this page
//      8      4  version, 1
//     12      4  count of data pages that follow, 1 to 1000
//     16      8  volume tag
//     24      8  segment id
//     32      8  page number of this page in the file
//     40      8  pages of the file that were on stable storage when this batch was written
//     48     48  zeros
//     96   4000  CRC32C of each data page, continued from the CRC32C of (volume tag, segment id,
//                page number), 8 bytes each; zeros where there is no page
//
// Pure. Thread: any.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

inline constexpr std::uint32_t kPagesPerBatchMax = 1000;
inline constexpr std::uint32_t kSegmentVersion = 1;

/// Where a page belongs. A page that is found elsewhere is not valid there.
struct PageIdentity {
  std::uint64_t volume_tag = 0;
  SegmentId segment;
  std::uint64_t page = 0;  ///< number in the segment file
};

struct SegmentBatch {
  std::uint32_t page_count = 0;    ///< data pages
  std::uint64_t synced_pages = 0;  ///< pages of the file that were durable before this batch
};

/// Checksum of a data page at its place. Requires page.size() == kPageSize.
std::uint32_t page_checksum(const PageIdentity& identity, Bytes page);

/// Fills `page` (kPageSize bytes) with the checksum page of a batch of checksums.size() data pages,
/// 1 to kPagesPerBatchMax. `identity` is that of the checksum page itself.
void encode_checksum_page(const PageIdentity& identity, std::uint64_t synced_pages,
                          std::span<const std::uint32_t> checksums, MutableBytes page);

/// Verifies that `page` is the checksum page that belongs at `identity`.
/// Errors: kCorrupt, kNewerFormat (right in all but a version above kSegmentVersion).
Result<SegmentBatch> decode_checksum_page(const PageIdentity& identity, Bytes page);

/// Copies the checksums of the first out.size() data pages of a verified checksum page.
void copy_checksums(Bytes page, std::span<std::uint32_t> out);

}  // namespace kvsyncfs
