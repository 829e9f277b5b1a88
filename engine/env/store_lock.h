// The lock of a store: one daemon, mkfs or fsck at a time. An flock(2) on STORE/lock, so it ends
// with its holder, however that ends. Thread: one.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace kvsyncfs {

class StoreLock {
 public:
  /// Errors: kBusy (somebody else holds it), kNotFound, kAccess, kReadOnly, kIo.
  static Result<StoreLock> take(const std::string& store);
  StoreLock(StoreLock&& other) noexcept;
  StoreLock& operator=(StoreLock&& other) = delete;
  ~StoreLock();

 private:
  explicit StoreLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace kvsyncfs
