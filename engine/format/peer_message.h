// What the nodes of a volume ask of each other: kinds of requests, and the layouts of their heads.
// Field tables: kvsyncfs-protocol(7), "Requests". Pure. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

/// A kind is never given a second meaning.
enum class PeerRequest : std::uint16_t {
  kAcknowledge = 1,   ///< head: Acknowledge; the answer is empty
  kReplicate = 2,     ///< head: BatchPlace; body: a batch of that segment; the answer is empty
  kReadPages = 3,     ///< head: PagesWanted; the answer: checksums, and the pages as body
  kOpenSnapshot = 4,  ///< head: SnapshotWanted; the answer: SnapshotOpened
  kReadSnapshot = 5,  ///< head: RecordsWanted; the answer: SnapshotPiece, and records as body
  kCheckBatch = 6,    ///< head: BatchPlace of any page of it; the answer: BatchSpan, if it is good
  kReadBatch = 7,     ///< as kCheckBatch, with the batch as body
  kMendBatch = 8,     ///< head: BatchPlace; body: the batch; the answer is empty
  kNextBatch = 9,     ///< head: BatchPlace; the answer: BatchSpan of the first one there or behind
};

/// The sender applied everything up to here. With the digest of its catalog's history at an earlier
/// place (catalog.h, HistoryDigest); position 0: at none. `incarnation`: of the
/// session that speaks; the connection may be older than that. `to`: the session whose change is
/// meant, or a later one of its node: an earlier life of that node must not take the word for it.
struct Acknowledge {
  Position position;
  Position history_position;
  std::uint32_t history_digest = 0;
  Incarnation incarnation = {};
  Incarnation to = {};
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

/// The catalog of the other node at some position, this one or a later one.
struct SnapshotWanted {
  Position at_least;
  bool operator==(const SnapshotWanted&) const = default;
};
struct SnapshotOpened {
  std::uint64_t snapshot = 0;  ///< its number, from 1
  Position position;
  std::uint64_t records = 0;  ///< about so many
  // The last batch of the log in it; index 0: none is told.
  std::uint64_t batch_index = 0;
  std::int64_t batch_revision = 0;
  std::string batch_key;
  bool operator==(const SnapshotOpened&) const = default;
};
/// A piece of it: records whose keys come after `after`, which is empty at first.
struct RecordsWanted {
  std::uint64_t snapshot = 0;
  std::string after;
  bool operator==(const RecordsWanted&) const = default;
};
struct SnapshotPiece {
  std::uint32_t checksum = 0;  ///< snapshot_checksum()
  bool operator==(const SnapshotPiece&) const = default;
};
inline constexpr std::size_t kSnapshotPieceAim = 1u << 20;  ///< bytes, if no record is larger
inline constexpr std::size_t kSnapshotPieceMax = 4u << 20;  ///< bytes
/// Of what was asked for and what came: a piece in the place of another one shows.
std::uint32_t snapshot_checksum(const RecordsWanted& wanted, Bytes piece);
/// Where a batch lies: its checksum page, and how many pages it has with that.
struct BatchSpan {
  std::uint64_t page = 0;
  std::uint32_t count = 0;
  bool operator==(const BatchSpan&) const = default;
};

std::string encode(const Acknowledge& message);
std::string encode(const BatchPlace& message);
std::string encode(const PagesWanted& message);
std::string encode(const SnapshotWanted& message);
std::string encode(const SnapshotOpened& message);
std::string encode(const RecordsWanted& message);
std::string encode(const SnapshotPiece& message);
std::string encode(const BatchSpan& message);
/// Errors: kCorrupt.
Result<Acknowledge> decode_acknowledge(std::string_view head);
Result<BatchPlace> decode_batch_place(std::string_view head);
Result<PagesWanted> decode_pages_wanted(std::string_view head);
Result<SnapshotWanted> decode_snapshot_wanted(std::string_view head);
Result<SnapshotOpened> decode_snapshot_opened(std::string_view head);
Result<RecordsWanted> decode_records_wanted(std::string_view head);
Result<SnapshotPiece> decode_snapshot_piece(std::string_view head);
Result<BatchSpan> decode_batch_span(std::string_view head);

/// The answer to kReadPages: one checksum a page, as in a checksum page.
std::string encode_page_checksums(const std::vector<std::uint32_t>& checksums);
/// Errors: kCorrupt (none, or more than kPagesPerBatchMax).
Result<std::vector<std::uint32_t>> decode_page_checksums(std::string_view head);

}  // namespace kvsyncfs
