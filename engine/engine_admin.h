// What an operator asks of a node that is up, and tells it: kvsyncfs-ctl(8). Beside engine.h, so
// that programs which only use a store need not know it.
//
// Long work goes in steps that the caller repeats, each from where the last one ended: a step is
// bounded, nothing is kept between two of them, and who goes away leaves nothing behind. Paths are
// from the root of the volume, with or without a leading slash. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"

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

class EngineAdmin {
 public:
  virtual ~EngineAdmin() = default;

  /// Where the bytes of a file are, from `offset` on, at most `count_max` extents. Errors:
  /// kNotFound, kNotDirectory, kInvalid (not a path, or no file), kCorrupt, kIo.
  virtual Result<FileLocation> locate(std::string_view path, std::uint64_t offset,
                                      std::size_t count_max) = 0;
};

}  // namespace kvsyncfs
