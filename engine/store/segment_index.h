// All segments of the store by id, with a bounded number of them open.
//
// A closed segment costs its entry; opening reads its checksum pages. A reader pins a segment with
// a SegmentPtr; an evicted or removed one closes with its last pin. Thread: any; one mutex, never
// held over I/O.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/store/segment.h"

namespace kvsyncfs {

/// Path of a segment's file.
std::string segment_path(const std::string& directory, SegmentId id);
/// The id in a file name; kNoSegment if it is not a segment's.
SegmentId parse_segment_name(const std::string& name);

class SegmentIndex {
 public:
  SegmentIndex(Disk& disk, std::string directory, std::uint64_t volume_tag, std::size_t open_max,
               OpenMode mode, StoreCounts& counts);

  /// A segment with a file of that many bytes.
  void add(SegmentId id, std::uint64_t file_bytes);
  /// A segment that is being written; stays open until release.
  SegmentPtr add_open(SegmentId id, std::uint64_t file_bytes, std::unique_ptr<File> file);
  void release(const SegmentPtr& segment);

  /// The segment, open. Errors: kNotFound, kIo, kNewerFormat, kNoMemory.
  Result<SegmentPtr> pin(SegmentId id);

  struct Info {
    std::uint64_t file_bytes = 0;
    std::uint64_t expected_bytes = 0;  ///< its length as the catalog knows it; 0: unknown
  };
  std::vector<std::pair<SegmentId, Info>> list() const;
  bool info(SegmentId id, Info& out) const;
  void set_info(SegmentId id, const Info& info);

  /// Forgets the segment: no new pins. `unused`: there are no old ones either.
  struct Taken {
    bool found = false, unused = false;
    std::uint64_t file_bytes = 0;
  };
  Taken take(SegmentId id);
  std::size_t size() const;

 private:
  struct Entry {
    Info info;
    std::weak_ptr<Segment> any;  // the one object of this segment, wherever it is pinned
    SegmentPtr cached;           // in lru_
    std::list<SegmentId>::iterator place;
  };
  void cache(Entry& entry, const SegmentPtr& segment, std::vector<SegmentPtr>& evicted);

  Disk& disk_;
  const std::string directory_;
  const std::uint64_t volume_tag_;
  const std::size_t open_max_;
  const OpenMode mode_;
  StoreCounts& counts_;

  mutable std::mutex mutex_;
  std::unordered_map<SegmentId, Entry> entries_;
  std::list<SegmentId> lru_;  // of cached ones, latest first
};

}  // namespace kvsyncfs
