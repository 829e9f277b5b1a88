#include "engine/format/segment_layout.h"

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

// The structs below are copied as they are.
static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kMagic = 0x4253564b;  // "KVSB"
constexpr std::size_t kCheckedOffset = 8;     // the page's own checksum covers everything from here

struct ChecksumPage {
  std::uint32_t magic;
  std::uint32_t checksum;
  std::uint32_t version;
  std::uint32_t page_count;
  std::uint64_t volume_tag;
  std::uint64_t segment;
  std::uint64_t page;
  std::uint64_t synced_pages;
  std::uint8_t reserved[48];
  std::uint32_t checksums[kPagesPerBatchMax];
};
static_assert(sizeof(ChecksumPage) == kPageSize);
static_assert(std::is_trivially_copyable_v<ChecksumPage>);
static_assert(std::has_unique_object_representations_v<ChecksumPage>);  // no padding
static_assert(offsetof(ChecksumPage, checksum) == 4);
static_assert(offsetof(ChecksumPage, version) == kCheckedOffset);
static_assert(offsetof(ChecksumPage, page_count) == 12);
static_assert(offsetof(ChecksumPage, volume_tag) == 16);
static_assert(offsetof(ChecksumPage, segment) == 24);
static_assert(offsetof(ChecksumPage, page) == 32);
static_assert(offsetof(ChecksumPage, synced_pages) == 40);
static_assert(offsetof(ChecksumPage, checksums) == 96);

std::uint32_t own_checksum(Bytes page) { return crc32c(page.subspan(kCheckedOffset)); }

template <typename T>
T load(Bytes page, std::size_t offset) {
  T value;
  std::memcpy(&value, page.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::uint32_t page_checksum(const PageIdentity& identity, Bytes page) {
  assert(page.size() == kPageSize);
  const std::uint64_t seed[3] = {identity.volume_tag, identity.segment.value, identity.page};
  return crc32c(page, crc32c(std::as_bytes(std::span(seed))));
}

void encode_checksum_page(const PageIdentity& identity, std::uint64_t synced_pages,
                          std::span<const std::uint32_t> checksums, MutableBytes page) {
  assert(page.size() == kPageSize);
  assert(!checksums.empty() && checksums.size() <= kPagesPerBatchMax);
  ChecksumPage fields{};
  fields.magic = kMagic;
  fields.version = kSegmentVersion;
  fields.page_count = static_cast<std::uint32_t>(checksums.size());
  fields.volume_tag = identity.volume_tag;
  fields.segment = identity.segment.value;
  fields.page = identity.page;
  fields.synced_pages = synced_pages;
  std::memcpy(fields.checksums, checksums.data(), checksums.size_bytes());
  std::memcpy(page.data(), &fields, sizeof fields);
  const std::uint32_t checksum = own_checksum(page);
  std::memcpy(page.data() + offsetof(ChecksumPage, checksum), &checksum, sizeof checksum);
}

Result<SegmentBatch> decode_checksum_page(const PageIdentity& identity, Bytes page) {
  if (page.size() != kPageSize) return Code::kCorrupt;
  // The cheap tests first: a walk over a damaged file asks this of every page.
  if (load<std::uint32_t>(page, offsetof(ChecksumPage, magic)) != kMagic ||
      load<std::uint64_t>(page, offsetof(ChecksumPage, volume_tag)) != identity.volume_tag ||
      load<std::uint64_t>(page, offsetof(ChecksumPage, segment)) != identity.segment.value ||
      load<std::uint64_t>(page, offsetof(ChecksumPage, page)) != identity.page ||
      load<std::uint32_t>(page, offsetof(ChecksumPage, checksum)) != own_checksum(page))
    return Code::kCorrupt;
  const auto version = load<std::uint32_t>(page, offsetof(ChecksumPage, version));
  if (version > kSegmentVersion) return Code::kNewerFormat;
  SegmentBatch batch;
  batch.page_count = load<std::uint32_t>(page, offsetof(ChecksumPage, page_count));
  batch.synced_pages = load<std::uint64_t>(page, offsetof(ChecksumPage, synced_pages));
  if (version != kSegmentVersion || batch.page_count == 0 || batch.page_count > kPagesPerBatchMax ||
      batch.synced_pages > identity.page)
    return Code::kCorrupt;
  return batch;
}

void copy_checksums(Bytes page, std::span<std::uint32_t> out) {
  assert(page.size() == kPageSize && out.size() <= kPagesPerBatchMax);
  std::memcpy(out.data(), page.data() + offsetof(ChecksumPage, checksums), out.size_bytes());
}

}  // namespace kvsyncfs
