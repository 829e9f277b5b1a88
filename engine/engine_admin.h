// What an operator asks of a node that is up, and tells it: kvsyncfs-ctl(8). Beside engine.h, so
// that programs which only use a store need not know it.
//
// Long work goes in steps that the caller repeats, each from where the last one ended: a step is
// bounded (some 2 s after its first piece), nothing is kept between two of them, and who goes away
// leaves nothing behind. Paths are from the root of the volume, with or without a leading slash.
// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

/// A node as an answer names it.
struct NodeView {
  NodeId id;
  std::string name;  ///< empty: not known here
  bool lives = false;
};

/// Bytes of a file that lie in one piece in a segment.
struct LocatedExtent {
  std::uint64_t file_offset = 0, length = 0;
  SegmentId segment;  ///< kNoSegment: reserved by fallocate
  std::uint64_t segment_offset = 0;
  NodeId owner;                 ///< 0 on a lone node
  std::vector<NodeId> holders;  ///< none on a lone node
  bool is_sealed = false;
  bool is_here = false;  ///< this node has a copy
  std::uint64_t pages = 0, pages_in_memory = 0;
};

struct FileLocation {
  InodeId inode;
  std::uint64_t size_bytes = 0, dirty_bytes = 0;  ///< dirty: whole pages that no segment has yet
  std::vector<LocatedExtent> extents;             ///< in file order
  std::uint64_t next = 0;                         ///< offset to go on at; 0: that was all
  std::vector<NodeView> nodes;                    ///< of owners and holders, by id
};

struct WarmStep {
  std::uint64_t size_bytes = 0;
  std::uint64_t next = 0;          ///< offset to go on at; 0: that was all
  std::uint64_t pulled_bytes = 0;  ///< that were not in memory before
  std::uint64_t memory_bytes = 0;  ///< of the arena; a file beyond it pushes its own bytes out
};

/// Pages of a segment that are damaged in a node's copy, or not in it.
struct BadCopy {
  NodeId node;
  SegmentId segment;
  std::uint64_t page = 0, count = 0;  ///< count 0: from that page on, nobody can tell how far
  std::string why;
  bool is_mended = false;          ///< from another node's copy
  std::vector<std::string> paths;  ///< who uses them, printable; only where no good copy was found
};

struct VerifyStep {
  std::uint64_t size_bytes = 0, next = 0;  ///< as in WarmStep
  std::vector<BadCopy> bad;
  std::vector<NodeId> unchecked;  ///< holders that were not reached
  std::vector<NodeView> nodes;    ///< of all these
};

struct ScrubPlace {
  SegmentId segment;  ///< 0: from the beginning; as next: that was all
  std::uint64_t page = 0;
};
struct ScrubStep {
  ScrubPlace next;
  std::uint64_t done_bytes = 0, total_bytes = 0;  ///< of this node's copies
  std::uint64_t checked_bytes = 0;                ///< by this step
  std::vector<BadCopy> bad;
  std::vector<NodeView> nodes;
};

/// Segments, and bytes of them.
struct SegmentShare {
  std::uint64_t segments = 0, bytes = 0;
};
struct HealReport {
  SegmentShare at_risk;  ///< fewer live copies than asked for; bytes: what has to be copied
  SegmentShare lost;     ///< no holder lives
  std::uint64_t due_segments = 0;  ///< of those at risk, that no delay keeps from being copied
  std::uint64_t healed_bytes = 0;  ///< copied by this node since its start
  std::uint64_t rate_bytes = 0;    ///< at most, a second, on each node
  std::uint64_t delay_ns = 0;      ///< of a node's absence, before it is replaced
  struct Leaving {
    NodeView node;
    SegmentShare left;  ///< that it still holds
  };
  std::vector<Leaving> leaving;            ///< that are drained
  std::vector<NodeView> away, maintained;  ///< maintained: their absence is planned
};

struct LostFiles {
  SegmentShare lost;
  std::vector<std::string> paths;  ///< printable, in order
  std::uint64_t without_path = 0;  ///< files that are open and removed
  bool is_cut = false;             ///< there are more
  std::vector<NodeView> nodes;     ///< holders of what is lost
};

/// A catalog that is being saved: its records are read piece by piece while the volume goes on.
struct SavedCatalog {
  std::uint64_t snapshot = 0;  ///< its number on this node
  std::string volume;
  Uuid uuid{};
  std::uint64_t generation = 0;  ///< of the volume's log
  Position position;
  Timestamp taken;
  std::uint64_t estimated_records = 0;
};
struct SavedPiece {
  std::string records;   ///< as catalog/snapshot.h has them; empty: that was all
  std::string last_key;  ///< of them
  std::uint64_t count = 0;
};
/// What keeps the bytes of a saved catalog.
struct HoldView {
  std::string name;
  Position position;
  Timestamp taken, expires;
  std::uint64_t segments = 0;    ///< that it keeps
  std::uint64_t kept_bytes = 0;  ///< of them, that nothing in the volume refers to any more
};

class EngineAdmin {
 public:
  virtual ~EngineAdmin() = default;

  /// Where the bytes of a file are, from `offset` on, at most `count_max` extents. Errors:
  /// kNotFound, kNotDirectory, kInvalid (not a path, or no file), kCorrupt, kIo.
  virtual Result<FileLocation> locate(std::string_view path, std::uint64_t offset,
                                      std::size_t count_max) = 0;
  /// Brings bytes of a file from `offset` on into this node's memory, at most 16 MiB. Errors: those
  /// of locate(), and of a read.
  virtual Result<WarmStep> warm(std::string_view path, std::uint64_t offset) = 0;

  /// Has each holder read its copy of a file's bytes from `offset` on, at most 16 extents, and
  /// mends bad copies from good ones. Errors: those of locate().
  virtual Result<VerifyStep> verify(std::string_view path, std::uint64_t offset) = 0;
  /// Reads this node's own copies of sealed segments, at most 16 batches, and mends bad ones from
  /// other nodes. Errors: kIo, kCorrupt (the catalog).
  virtual Result<ScrubStep> scrub(ScrubPlace from) = 0;

  // Of a cluster; kUnsupported on a lone node, save lost().
  virtual Result<HealReport> heal() = 0;
  /// On all nodes, until the next call. Errors: kInvalid (0), those of etcd.
  virtual Status set_heal_rate(std::uint64_t bytes_per_second) = 0;
  /// Nodes that are away now are not waited for. Errors: those of etcd.
  virtual Status heal_now() = 0;
  /// What of the volume would be gone with a node: segments in use that it holds and nobody else
  /// who lives and can be reached. Errors: kTimeout (this node's lease is in doubt), kIo, kCorrupt.
  virtual Result<SegmentShare> last_copies(NodeId node) = 0;
  /// Files with bytes that no live node has; on a lone node those whose segment's file is gone. At
  /// most 10 000. Slow: reads all names. Errors: kIo, kCorrupt.
  virtual Result<LostFiles> lost() = 0;

  /// Begins to save the catalog as it is now: what was written on this node is flushed before, and
  /// from then on no segment that it points at is deleted, until the hold of that name is released
  /// or `seconds` have passed. A snapshot that is not read for a minute is gone, as is one when the
  /// next begins. Errors: kUnsupported (a lone node), kInvalid (no name), kExists (there is such a
  /// hold), kTooBig (kHoldsMax), those of a change.
  virtual Result<SavedCatalog> save_catalog(std::string_view name, std::uint64_t seconds) = 0;
  /// Records behind that key (empty: from the first), about 1 MiB. Errors: kStale (the snapshot is
  /// gone), kIo, kCorrupt.
  virtual Result<SavedPiece> saved_records(std::uint64_t snapshot, std::string_view after) = 0;
  /// Errors: kUnsupported (a lone node), kNotFound, those of a change.
  virtual Status release_hold(std::string_view name) = 0;
  /// By name; none on a lone node. Errors: kCorrupt, kIo.
  virtual Result<std::vector<HoldView>> holds() = 0;
};

}  // namespace kvsyncfs
