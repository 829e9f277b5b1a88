// Files as the engine sees them. The real twin is env/real.h; tests/sim has one that loses,
// tears and flips what was not synced.
//
// Paths are absolute or relative to the working directory of the process; the engine builds them
// all from the store's folder. Thread: any, on Disk and on File, save where said.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"

namespace kvsyncfs {

/// One open file; closes when destroyed. Positional I/O only. Reads and writes of disjoint ranges
/// may run at the same time.
class File {
 public:
  virtual ~File() = default;

  /// Reads `out.size()` bytes at `offset`; fewer only where the file ends. Returns the count.
  /// Direct files: offset, size and address are multiples of 4096.
  /// Errors: kIo.
  virtual Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) = 0;

  /// Writes all pieces back to back at `offset`, or fails (what was written then is unknown).
  /// Direct files: as for read_at, each piece. At most 1024 pieces.
  /// Errors: kIo, kNoSpace.
  virtual Status write_at(std::uint64_t offset, std::span<const Bytes> pieces) = 0;
  Status write_at(std::uint64_t offset, Bytes bytes) { return write_at(offset, {&bytes, 1}); }

  /// All completed writes, and the size needed to read them, are on stable storage (fdatasync(2)).
  /// After an error the state of unsynced writes is unknown for good. Errors: kIo.
  virtual Status sync() = 0;

  /// Reserves space for [0, size) and sets the size (posix_fallocate(3)); new bytes read as zeros.
  /// Errors: kIo, kNoSpace.
  virtual Status allocate(std::uint64_t size) = 0;

  /// Cuts or extends to `size`. Errors: kIo, kNoSpace.
  virtual Status truncate(std::uint64_t size) = 0;

  /// Errors: kIo.
  virtual Result<std::uint64_t> size() = 0;
};

enum class OpenMode {
  kRead,          ///< must exist
  kReadWrite,     ///< must exist
  kCreateNew,     ///< read and write; kExists if it is there
  kCreateOrOpen,  ///< read and write
};

struct DiskSpace {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< to this process
  std::uint64_t available_inodes = 0;
  std::uint64_t total_inodes = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;

  /// `direct` asks for I/O past the page cache (O_DIRECT); where the file system has none, the file
  /// behaves the same through the page cache.
  /// Errors: kNotFound, kExists, kAccess, kNoSpace, kNoMemory, kReadOnly, kIo.
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                             bool direct = false) = 0;
  /// Durable after sync_directory of the parent. Errors: kNotFound, kIo.
  virtual Status remove(const std::string& path) = 0;
  /// Replaces `to`. Durable after sync_directory. Errors: kNotFound, kNoSpace, kIo.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Errors: kExists, kNoSpace, kIo.
  virtual Status make_directory(const std::string& path) = 0;
  virtual Status remove_directory(const std::string& path) = 0;
  /// Names (not paths) in the directory, sorted, without . and .. Errors: kNotFound, kIo.
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  virtual Status sync_directory(const std::string& directory) = 0;
  /// True if there is a file or directory.
  virtual Result<bool> exists(const std::string& path) = 0;
  virtual Result<bool> is_directory(const std::string& path) = 0;
  /// Size in bytes without opening. Errors: kNotFound, kIo.
  virtual Result<std::uint64_t> size_of(const std::string& path) = 0;
  virtual Result<DiskSpace> space(const std::string& path) = 0;
};

}  // namespace kvsyncfs
