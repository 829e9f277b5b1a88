// What the nodes of a volume ask of each other: kinds of requests, and the layouts of their heads.
// Field tables: kvsyncfs-protocol(7), "Requests". Pure. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

/// A kind is never given a second meaning.
enum class PeerRequest : std::uint16_t {
  kAcknowledge = 1,  ///< head: Acknowledge; the answer is empty
  kReplicate = 2,    ///< head: BatchPlace; body: a batch of that segment; the answer is empty
  kReadPages = 3,    ///< head: PagesWanted; the answer: checksums, and the pages as body
};

/// The sender applied everything up to here.
struct Acknowledge {
  Position position;
  bool operator==(const Acknowledge&) const = default;
};
/// A batch of a segment, by the page of its checksum page.
struct BatchPlace {
  SegmentId segment;
  std::uint64_t page = 0;
  bool operator==(const BatchPlace&) const = default;
};
/// Data pages from `page` on, at most `count`, no further than the end of their batch.
struct PagesWanted {
  SegmentId segment;
  std::uint64_t page = 0;
  std::uint32_t count = 0;
  bool operator==(const PagesWanted&) const = default;
};

std::string encode(const Acknowledge& message);
std::string encode(const BatchPlace& message);
std::string encode(const PagesWanted& message);
/// Errors: kCorrupt.
Result<Acknowledge> decode_acknowledge(std::string_view head);
Result<BatchPlace> decode_batch_place(std::string_view head);
Result<PagesWanted> decode_pages_wanted(std::string_view head);

/// The answer to kReadPages: one checksum a page, as in a checksum page.
std::string encode_page_checksums(const std::vector<std::uint32_t>& checksums);
/// Errors: kCorrupt (none, or more than kPagesPerBatchMax).
Result<std::vector<std::uint32_t>> decode_page_checksums(std::string_view head);

}  // namespace kvsyncfs
