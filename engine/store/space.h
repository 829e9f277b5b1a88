// The store's account of space: what is reserved, and the preallocated spare files that back it.
//
// Rules: 1. all files together stay within size_bytes; 2. what reserve() granted fits into the open
// user segment and the spares, whatever the appends look like that use it (small appends waste a
// page each on checksums, so the first segment's worth of reserved pages counts twice); 3. two
// segments (one of them may be what is left of the cleaner's open one) are kept from reserve(), so
// that the cleaner can always move a segment's live bytes. Thread: any. Locks: making_mutex_ before
// mutex_; no I/O under mutex_.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "engine/store/segment_store.h"

namespace kvsyncfs {

class Space {
 public:
  Space(Disk& disk, const StoreOptions& options);

  static bool is_spare_name(const std::string& name);
  /// Bytes of a segment's file changed, from 0 if it is new.
  void resize_segment(std::uint64_t from_bytes, std::uint64_t to_bytes);

  Status reserve(std::uint64_t bytes);
  void unreserve(std::uint64_t bytes);
  std::uint64_t free_bytes() const;

  /// A preallocated file of segment_size_bytes, which is now a segment's in the account.
  /// Errors: kNoSpace, kIo.
  Result<std::string> take_spare(Stream stream);
  void return_spare(const std::string& path);
  /// A new preallocated file of segment_size_bytes for a segment of another node, which leaves what
  /// this node has reserved. Errors: kNoSpace, kExists, kIo.
  Status make_file(const std::string& path);
  /// Pages left in the open segment of a stream; 0: it has none.
  void set_left(Stream stream, std::uint64_t pages);

  /// Takes a segment's file out of the account: it becomes a spare if one is wanted and `unused`,
  /// or is removed. Errors: kIo.
  Status retire(const std::string& path, std::uint64_t file_bytes, bool unused);

  std::uint64_t files_bytes() const;

 private:
  using Pages = std::int64_t;

  // Under mutex_, all.
  Pages needed(std::uint64_t reserved_bytes) const;  // pages that back so much of a reservation
  Pages backed() const;                              // pages that users may count on
  bool may_create() const { return files_bytes_locked() + segment_size_ <= size_; }
  std::uint64_t files_bytes_locked() const {
    return segment_bytes_ + spares_.size() * segment_size_;
  }
  std::size_t wanted_spares() const;
  std::uint64_t room_on_disk() const;  // for what is not promised yet; without mutex_

  std::string next_spare_path();
  Status make_spare();  // under making_mutex_
  Status preallocate(const std::string& path);
  Status recycle(const std::string& path);  // under making_mutex_
  void drop_surplus();

  Disk& disk_;
  const std::string directory_;
  const std::function<std::uint64_t()> keep_free_bytes_;
  const std::uint64_t size_, segment_size_;
  const Pages segment_pages_, segment_usable_;

  std::mutex making_mutex_;
  mutable std::mutex mutex_;
  std::uint64_t reserved_ = 0;       // bytes
  std::uint64_t segment_bytes_ = 0;  // of segment files
  std::vector<std::string> spares_;  // paths
  std::uint64_t next_spare_ = 0;
  std::array<Pages, 2> left_{};  // usable pages in the open segments, by stream
};

}  // namespace kvsyncfs
