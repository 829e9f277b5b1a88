// The ballast: a file that only takes space, for the time when others fill the disk below the
// store.
//
// What must not fail on a full disk (the log, the catalog's checkpoints) gets guarded() for a disk:
// a call there that meets kNoSpace gives the ballast up, which frees its bytes, and is made again.
// User data does not: a full disk is ENOSPC for the writer. Thread: any, on all of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/store/guarded_disk.h"

namespace kvsyncfs {

class Ballast final : public RoomMaker {
 public:
  /// `disk` outlives it, and it outlives all files that guarded() opens. Nothing is touched yet.
  Ballast(Disk& disk, const std::string& store, std::uint64_t size_bytes);
  ~Ballast() override;

  /// mkfs: makes the file. Errors: kNoSpace, kIo.
  Status make();
  /// Takes over the file of a former life. Errors: kIo.
  Status open();
  /// Makes it if it is not there and the disk has room for it and `spare_bytes` more; that it has
  /// not is no error. Errors: kIo.
  Status restore(std::uint64_t spare_bytes);

  /// The disk has room for so much, also where it tells less than this process may take. Only while
  /// the ballast is not there. Errors: kNoSpace, kIo.
  Status probe(std::uint64_t bytes);

  bool is_there() const { return is_there_.load(std::memory_order_acquire); }
  std::uint64_t size_bytes() const { return size_bytes_; }

  /// How often it was given up.
  std::uint64_t mark() const override { return count_.load(std::memory_order_acquire); }
  /// Gives it up, if nobody has since the mark.
  bool make_room(std::uint64_t mark) override;

  Disk& guarded() { return *guarded_; }

 private:
  Status make_locked(std::uint64_t size_bytes);

  Disk& disk_;
  const std::string store_, path_;
  const std::uint64_t size_bytes_;
  std::mutex mutex_;  ///< held over the file's making and removal
  std::atomic<bool> is_there_ = false;
  std::atomic<std::uint64_t> count_ = 0;
  const std::unique_ptr<Disk> guarded_;
};

}  // namespace kvsyncfs
