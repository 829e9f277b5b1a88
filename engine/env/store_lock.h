// The lock of a store: one daemon, mkfs or fsck at a time. An flock(2) on STORE/lock, so it ends
// with its holder, however that ends. Thread: one.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace kvsyncfs {

class StoreLock {
 public:
  enum class Mode {
    kChange,  ///< makes the lock file at need
    kLook,    ///< changes nothing, and works on a disk that is mounted read-only
  };
  /// Errors: kBusy (somebody else holds it, who is named), kNotFound (kLook: nobody ever took it),
  /// kAccess, kReadOnly, kIo.
  static Result<StoreLock> take(const std::string& store, Mode mode = Mode::kChange);
  StoreLock(StoreLock&& other) noexcept;
  StoreLock& operator=(StoreLock&& other) = delete;
  ~StoreLock();

 private:
  explicit StoreLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace kvsyncfs
