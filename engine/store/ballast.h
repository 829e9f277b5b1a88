// The ballast: a file that only takes space, for the time when others fill the disk below the
// store, and some empty files for the time when they take its inodes.
//
// What must not fail on a full disk (the log, the catalog's checkpoints) gets guarded() for a disk:
// a call there that meets kNoSpace gives up the file's bytes, or one of the empty files where it is
// inodes that lack, and is made again.
// User data does not: a full disk is ENOSPC for the writer. Thread: any, on all of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/store/guarded_disk.h"

namespace kvsyncfs {

/// Those that a file system does not count are as many as it takes.
inline std::uint64_t inodes_left(const DiskSpace& space) {
  return space.total_inodes == 0 ? ~std::uint64_t{0} : space.available_inodes;
}
/// Of the disk, that files for user data leave to the log and the catalog.
inline constexpr std::uint64_t kInodesKept = 16;

class Ballast final : public RoomMaker {
 public:
  /// `disk` outlives it, and it outlives all files that guarded() opens. Nothing is touched yet.
  Ballast(Disk& disk, const std::string& store, std::uint64_t size_bytes);
  ~Ballast() override;

  static constexpr std::size_t kSpareFiles = 16;

  /// mkfs: makes the files. Errors: kNoSpace, kIo.
  Status make();
  /// Takes over the files of a former life. Errors: kIo.
  Status open();
  /// Makes what is not there if the disk has room for it and `spare_bytes` more, and inodes; that
  /// it has not is no error. Errors: kIo.
  Status restore(std::uint64_t spare_bytes);

  /// The disk has room for so much, also where it tells less than this process may take, and inodes
  /// for a few files. Only while something of the ballast is not there. Errors: kNoSpace, kIo.
  Status probe(std::uint64_t bytes);

  bool is_there() const { return has_bytes() && has_inodes(); }
  bool has_bytes() const { return has_bytes_.load(std::memory_order_acquire); }
  bool has_inodes() const { return spares_.load(std::memory_order_acquire) == kSpareFiles; }
  std::uint64_t size_bytes() const { return size_bytes_; }

  /// How often some of it was given up.
  std::uint64_t mark() const override { return count_.load(std::memory_order_acquire); }
  /// Gives up what the disk lacks, if nobody has since the mark.
  bool make_room(std::uint64_t mark) override;

  Disk& guarded() { return *guarded_; }

 private:
  Status make_locked(std::uint64_t size_bytes);
  Status make_spares_locked();
  bool give_spare_locked();
  std::string spare_path(std::size_t index) const;

  Disk& disk_;
  const std::string store_, path_, spares_path_;
  const std::uint64_t size_bytes_;
  std::mutex mutex_;  ///< held over the files' making and removal
  std::atomic<bool> has_bytes_ = false;
  std::atomic<std::size_t> spares_ = 0;
  std::atomic<std::uint64_t> count_ = 0;
  const std::unique_ptr<Disk> guarded_;
};

}  // namespace kvsyncfs
