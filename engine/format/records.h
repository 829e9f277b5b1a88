// The catalog's records as values, with their encodings. Field tables: kvsyncfs-format(5).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"

namespace kvsyncfs {

/// What stat(2) shows and what the engine needs of one inode.
struct Inode {
  std::uint32_t mode = 0;  ///< type and permission bits, as st_mode
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t link_count = 0;
  std::uint64_t size = 0;             ///< bytes
  std::uint64_t allocated_bytes = 0;  ///< bytes in extents, reserved ones included
  std::uint64_t device = 0;           ///< st_rdev of a device node
  std::uint64_t change = 0;           ///< counts changes of data or metadata, never goes back
  Timestamp atime, mtime, ctime, birth;
  InodeId parent;  ///< directories: the directory that holds it; else 0
  std::uint32_t xattr_count = 0;
  std::string target;  ///< symlinks: where it points
  auto operator<=>(const Inode&) const = default;
};

/// One directory entry. `cookie` is its stable place in readdir order, from 3: a name that is new
/// in its directory comes last, a rename inside the directory keeps the place.
struct Dentry {
  InodeId inode;
  std::uint32_t type = 0;  ///< S_IFMT bits of the inode
  std::uint64_t cookie = 0;
  std::string name;
};

/// File bytes [file_offset, +length) are segment bytes [segment_offset, +length);
/// segment kNoSegment: reserved by fallocate, reads as zeros.
struct Extent {
  std::uint64_t file_offset = 0;
  std::uint64_t length = 0;
  SegmentId segment;
  std::uint64_t segment_offset = 0;
  std::uint64_t file_end() const { return file_offset + length; }
  auto operator<=>(const Extent&) const = default;
};

/// The last session of a node: one life of its daemon, between a Join and an End in the log.
struct SessionRecord {
  SessionId session;  ///< the place of its Join; of the End where it never joined
  Incarnation incarnation;
  std::uint64_t features = 0;      ///< bits of what the node understands
  std::uint32_t lease_ms = 0;      ///< it may answer from its catalog for so long on its own
  Position ended;                  ///< where its End is; 0: it lives
  std::uint64_t last_request = 0;  ///< the highest request number that has been applied
  bool lives() const { return ended.value == 0; }
  auto operator<=>(const SessionRecord&) const = default;
};
/// Whether a change at `position` returns to its caller only when this session has acknowledged it:
/// it joined there or before and has not ended.
inline bool must_acknowledge(const SessionRecord& record, Position position) {
  return record.lives() && position_of(record.session.value) <= position;
}

/// An inode without a name. Each session that lived when it lost the last one holds it until it
/// says otherwise or ends.
struct OrphanRecord {
  struct Holder {
    SessionId session;
    bool has_said = false;  ///< that it holds the inode; else it has not said anything yet
    auto operator<=>(const Holder&) const = default;
  };
  std::vector<Holder> holders;  ///< by session
  bool operator==(const OrphanRecord&) const = default;
};

enum class SegmentState : std::uint8_t { kOpen = 1, kSealed = 2 };

struct SegmentRecord {
  SegmentState state = SegmentState::kOpen;
  std::uint64_t length =
      0;  ///< bytes of the sealed segment (pages, checksum pages included); 0 while open
  std::uint64_t live_bytes = 0;  ///< bytes that extents point at (a shared byte counts each time)
  NodeId owner = {};             ///< who appends to it; 0 and nobody on a lone node
  std::vector<NodeId> holders = {};  ///< who has its bytes, the owner among them
  auto operator<=>(const SegmentRecord&) const = default;
};
inline constexpr std::size_t kHoldersMax = 16;
/// What owner and holders of a segment of a cluster must be.
bool are_holders(NodeId owner, const std::vector<NodeId>& holders);

/// Keeps the segments that there were at its position, for a catalog that was saved there.
struct HoldRecord {
  struct End {
    SegmentId segment;
    std::uint64_t bytes = 0;  ///< up to there extents referred to it
    auto operator<=>(const End&) const = default;
  };
  Position position;
  Timestamp taken, expires;
  std::vector<End> ends;  ///< of segments that were open, in order: they are sealed no shorter
  bool keeps(SegmentId segment) const { return position_of(segment.value) <= position; }
  bool operator==(const HoldRecord&) const = default;
};
using Holds = std::map<std::string, HoldRecord>;  ///< by name
/// By one of them.
bool is_kept(const Holds& holds, SegmentId segment);

std::string encode(const Inode& inode);
std::string encode(const SegmentRecord& record);
std::string encode(const SessionRecord& record);
std::string encode(const OrphanRecord& record);
std::string encode(const HoldRecord& record);
Result<Inode> decode_inode(std::string_view bytes);            ///< errors: kCorrupt
Result<SegmentRecord> decode_segment(std::string_view bytes);  ///< errors: kCorrupt
Result<SessionRecord> decode_session(std::string_view bytes);  ///< errors: kCorrupt
Result<OrphanRecord> decode_orphan(std::string_view bytes);    ///< errors: kCorrupt
Result<HoldRecord> decode_hold(std::string_view bytes);        ///< errors: kCorrupt

inline constexpr std::uint32_t kTypeMask = 0170000;  ///< S_IFMT
inline bool is_directory(const Inode& inode) { return (inode.mode & kTypeMask) == 0040000; }
inline bool is_regular(const Inode& inode) { return (inode.mode & kTypeMask) == 0100000; }
inline bool is_symlink(const Inode& inode) { return (inode.mode & kTypeMask) == 0120000; }

}  // namespace kvsyncfs
