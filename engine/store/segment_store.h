// Segments: files that only grow and are never rewritten, where file bytes live.
//
// A segment file is a row of *batches*: one checksum page (magic, version, volume tag, segment id,
// page index, page count, CRC32C of itself, then one CRC32C per data page, each seeded with volume
// tag, segment and page number so that a misdirected page shows), followed by its 1 to 1000 data
// pages. One append is one batch (or several where it is large), written by one direct write, so
// every byte is written once and a segment describes itself. Offsets are byte offsets in the file;
// extents point at bytes of data pages, and one extent never spans a checksum page. Two streams
// have an open segment each: user data, and what the cleaner moves (so that old and young bytes do
// not mix). Space is reserved before bytes are accepted (P8): reserve() makes sure that
// preallocated files can take them. Reads check every page; a bad one is kCorrupt, counted, told
// once to the log with file and segment. Layout: kvsyncfs-format(5), "Segments". Thread: any. The
// number of open files is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/disk.h"
#include "engine/format/segment_layout.h"

namespace kvsyncfs {

enum class Stream : std::uint8_t { kUser = 0, kCleaner = 1 };

/// Where one appended run (or a part of it, if it was split) lies.
struct Placed {
  std::size_t run = 0;           ///< index of the run
  std::uint64_t run_offset = 0;  ///< byte in the run where this part begins
  std::uint64_t length = 0;
  SegmentId segment;
  std::uint64_t segment_offset = 0;
};

struct StoreOptions {
  std::string directory;  ///< the store's segments/
  std::uint64_t volume_tag = 0;
  std::uint64_t size_bytes = 0;                  ///< of all segment files together
  std::uint64_t segment_size_bytes = 64u << 20;  ///< multiple of 4096
  std::size_t open_files_max = 256;  ///< besides those being written or not yet synced, at most 16
  bool read_only = false;
  /// What of the disk new files for user data leave to others.
  std::function<std::uint64_t()> keep_free_bytes = [] { return std::uint64_t{0}; };
  /// Commits OpenSegment, and SealSegment: the store asks, the engine's log decides the id. May be
  /// called from append and reserve, without any lock of the store that a read needs.
  std::function<Result<SegmentId>()> open_segment;
  std::function<Status(SegmentId, std::uint64_t length_bytes)> seal_segment;
  /// In a cluster: begins to send a batch, which lies at `page`, to the segment's other holders,
  /// and returns what waits until all have it on stable storage. It borrows the pieces until then.
  /// kUnreachable: one of them has it not; the segment is sealed before that batch, and a new one
  /// opened.
  using Shipment = std::function<Status()>;
  std::function<Shipment(SegmentId, std::uint64_t page, std::span<const Bytes> pieces)> ship;
};

struct StoreCounters {
  std::uint64_t appended_bytes = 0;  ///< data bytes of users
  std::uint64_t moved_bytes = 0;     ///< data bytes of the cleaner
  std::uint64_t written_bytes = 0;   ///< all bytes written to this node's own segments
  std::uint64_t copied_bytes = 0;    ///< written to copies of other nodes' segments
  std::uint64_t corrupt_pages = 0;
  std::uint64_t files_bytes = 0;  ///< space of segment files now
  std::uint64_t segment_count = 0;
};

/// What the catalog knows of a segment when the store opens.
struct KnownSegment {
  SegmentId id;
  bool sealed = false;
  std::uint64_t length = 0;  ///< bytes; of an open one what is referred to, so durable
  bool is_replica = false;   ///< another node appends to it
};

/// What is known of a segment's file.
struct SegmentFile {
  std::uint64_t file_bytes = 0;
  std::uint64_t length = 0;  ///< bytes of the segment; 0: not known
};

struct PageRange {
  std::uint64_t page = 0, count = 0;
  auto operator<=>(const PageRange&) const = default;
};

enum class Scrub : std::uint8_t {
  kBatches,  ///< pages that no valid checksum page covers
  kPages,    ///< also data pages that differ from their checksum: reads everything
};

class SegmentStore {
 public:
  virtual ~SegmentStore() = default;

  /// mkfs: makes the folder. Errors: kExists, kNoSpace, kIo.
  static Status format(Disk& disk, const StoreOptions& options);
  static Result<std::unique_ptr<SegmentStore>> open(Disk& disk, StoreOptions options);

  /// After replay: removes files of segments that the catalog does not know, and seals (through
  /// seal_segment) the open ones of the former life where their valid batches end. A read-only
  /// store only takes note of that.
  virtual Status adopt(std::span<const KnownSegment> known) = 0;

  /// Makes room for `bytes` more of user data, whole pages, beyond what is reserved already. append
  /// does not take from it: the caller gives back with unreserve, after the append, what it had
  /// reserved for it. Errors: kNoSpace (size_bytes reached or disk full; the caller cleans and
  /// retries), kIo, kReadOnly.
  virtual Status reserve(std::uint64_t bytes) = 0;
  virtual void unreserve(std::uint64_t bytes) = 0;

  /// Appends the runs, packed back to back from a fresh page. Runs are borrowed for the call. A run
  /// whose memory and size are page aligned is written without a copy. Each part never crosses a
  /// checksum page. An empty run is not placed. Calls that wait for one another share a batch:
  /// their whole pages come first, then the rest of all, packed; an error is then that of all.
  /// After an error, what was written of this call is forgotten. In a cluster all of it is on
  /// stable storage, here and on the other holders. Errors: kNoSpace (cleaner stream only), kIo,
  /// kReadOnly, those of the hooks.
  virtual Result<std::vector<Placed>> append(Stream stream, std::span<const Bytes> runs) = 0;

  /// A batch of a segment that another node appends to, as it lies there from `page` on, on stable
  /// storage when it returns. Batches of a segment come in order; one that is there is not written
  /// again. The memory is page aligned. Errors: kCorrupt (it is not whole, or not of that place),
  /// kStale (it does not follow, or the segment is not written here any more), kInvalid (beyond a
  /// segment), kNoSpace, kIo, kReadOnly.
  virtual Status write_replica(SegmentId id, std::uint64_t page, Bytes batch) = 0;
  /// The owner sealed its segment: what lies behind is nobody's. Errors: kNotFound (there is no
  /// copy), kIo.
  virtual Status seal_replica(SegmentId id, std::uint64_t length) = 0;

  /// A batch as it lies in the segment, with its checksum page at `page`, verified. Errors:
  /// kNotFound (no such segment, or no batch there), kCorrupt, kIo.
  virtual Result<AlignedBuffer> read_batch(SegmentId id, std::uint64_t page) = 0;
  /// The batch that has the page, its checksum page first. Errors: kNotFound (no such segment),
  /// kCorrupt (no valid batch has it), kIo.
  virtual Result<PageRange> batch_of(SegmentId id, std::uint64_t page) = 0;
  /// Where the first batch with a valid checksum page begins, at the page or behind it. Errors:
  /// kNotFound (no such segment, or no such batch), kIo.
  virtual Result<std::uint64_t> next_batch(SegmentId id, std::uint64_t page) = 0;
  /// Writes a batch of a sealed segment anew over a copy of it that is damaged, from a good copy;
  /// it is on stable storage when this returns. Errors: kNotFound (no such segment), kCorrupt (it
  /// is not whole, or not of that place), kInvalid (beyond the segment), kStale (another batch is
  /// there, or the segment is being written), kIo, kReadOnly.
  virtual Status mend_batch(SegmentId id, std::uint64_t page, Bytes batch) = 0;
  /// A sealed segment of which there should be a file, but is none (check_file()), gets one of that
  /// length in which no batch is whole, for mend_batch(). Whatever a crash leaves of that is again
  /// nothing, or a file that can be mended. Errors: kInvalid (not the length of a segment), kExists
  /// (there is a file), kStale (the segment is being written), kNoSpace, kIo, kReadOnly.
  virtual Status make_anew(SegmentId id, std::uint64_t length) = 0;
  /// The file is where the next start looks for it. Errors: kNotFound, kIo.
  virtual Status check_file(SegmentId id) const = 0;
  /// Where the batch ends that has the byte before `length`; 0 for 0. Errors: kNotFound, kIo.
  virtual Result<std::uint64_t> batch_end(SegmentId id, std::uint64_t length) = 0;
  /// Seals the segment if it is one of those being appended to; the next append opens another.
  /// Errors: those of the hooks.
  virtual Status finish(SegmentId id) = 0;

  /// The node's session has ended, and others may have sealed what it had open: nothing more is
  /// appended there. Returns those segments, which stay open until seal_replica(). Waits for the
  /// append that is under way.
  virtual std::vector<SegmentId> let_go() = 0;

  /// All appended bytes are on stable storage (nothing to do: no system call). Waits for no append.
  /// A failure is final: what it left on the disk cannot be known. Errors: kIo.
  virtual Status sync() = 0;

  /// Reads and verifies [offset, offset + out.size()), inside one batch. Whole aligned pages into
  /// aligned memory are not copied. Errors: kCorrupt, kIo, kNotFound.
  virtual Status read(SegmentId id, std::uint64_t offset, MutableBytes out) = 0;

  /// Reads whole pages from `page` on, with one read of the disk, and verifies them; returns how
  /// many, at least one. They go on over the ends of batches, so that checksum pages may be among
  /// them, but neither first nor last. A bad page further on does not cost the first. Errors:
  /// those of read(), kCorrupt also where no batch has `page`.
  virtual Result<std::size_t> load_pages(SegmentId id, std::uint64_t page, MutableBytes out) = 0;

  /// Unlinks the file, or keeps it for a later segment, and gives its space back (reads under way
  /// finish). A crash must not bring the segment back: its deletion is durable. Errors: kIo.
  virtual Status remove(SegmentId id) = 0;

  /// fsck: verifies a segment from its file; returns the bad pages in order. Bytes behind the
  /// segment's end, once adopt() has told it, are none of it. `progress` gets the bytes read of
  /// each step. Errors: kNotFound (there is no file), kIo, kNewerFormat.
  virtual Result<std::vector<PageRange>> scrub(
      SegmentId id, Scrub what, const std::function<void(std::uint64_t bytes)>& progress) = 0;
  /// Nothing: there is no file.
  virtual std::optional<SegmentFile> file(SegmentId id) const = 0;

  /// Bytes that can still be reserved without removing a segment (checksum pages already taken
  /// off).
  virtual std::uint64_t free_bytes() const = 0;
  virtual StoreCounters counters() const = 0;
};

}  // namespace kvsyncfs
