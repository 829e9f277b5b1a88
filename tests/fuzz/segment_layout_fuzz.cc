// Whatever a disk returns, a checksum page is refused or is one that could have been written.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/base/checksum.h"
#include "engine/format/segment_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  const PageIdentity identity{0x1122334455667788, SegmentId{0x0102}, 7};
  // Alone, noise never gets past the checksum: the second time it is made right.
  std::vector<std::byte> page(kPageSize);
  if (size > 0) std::memcpy(page.data(), data, std::min(size, page.size()));
  for (const bool repaired : {false, true}) {
    if (repaired) {
      std::memcpy(page.data(), "KVSB", 4);
      std::memcpy(page.data() + 16, &identity, sizeof identity);
      const std::uint32_t checksum = crc32c(Bytes(page).subspan(8));
      std::memcpy(page.data() + 4, &checksum, sizeof checksum);
    }
    const auto batch = decode_checksum_page(identity, page);
    if (!batch) continue;
    if (batch->page_count == 0 || batch->page_count > kPagesPerBatchMax ||
        batch->synced_pages > identity.page)
      std::abort();
    std::vector<std::uint32_t> checksums(batch->page_count);
    copy_checksums(page, checksums);
    std::vector<std::byte> again(kPageSize);
    encode_checksum_page(identity, batch->synced_pages, checksums, again);
    const auto same = decode_checksum_page(identity, again);
    if (!same || same->page_count != batch->page_count) std::abort();
  }
  (void)decode_checksum_page(identity, std::as_bytes(std::span(data, size)));
  return 0;
}
