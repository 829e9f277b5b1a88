// Who took POSIX locks through which open handle of a cluster's file.
//
// A lock of an open file description (F_OFD_SETLK) goes with the last close of its handle. The
// kernel asks for it as for a lock of a process, only with another owner, and says nothing of it at
// the end: a process's locks it drops with FLUSH, but this owner's name comes in no FLUSH, and
// RELEASE names no owner of a POSIX lock. So an owner that locked through a handle and whose FLUSH
// has not come is dropped when the handle is released. Thread: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/ids.h"

namespace kvsyncfs {

class HandleLocks {
 public:
  /// To be said before the lock is asked for.
  void took(std::uint64_t handle, InodeId inode, std::uint64_t owner) {
    std::lock_guard lock(mutex_);
    by_handle_.insert({handle, owner});
    by_file_.insert({{inode, owner}, handle});
  }
  /// The process has closed one of its descriptors of the handle.
  void flushed(std::uint64_t handle, InodeId inode, std::uint64_t owner) {
    std::lock_guard lock(mutex_);
    by_handle_.erase({handle, owner});
    by_file_.erase({{inode, owner}, handle});
  }
  /// The owners whose locks go with the handle. An owner's name may be another handle's by now (it
  /// is made from an address): then it is not among them, and the other handle has the locks.
  std::vector<std::uint64_t> released(std::uint64_t handle, InodeId inode) {
    std::vector<std::uint64_t> owners;
    std::lock_guard lock(mutex_);
    auto it = by_handle_.lower_bound({handle, 0});
    for (; it != by_handle_.end() && it->first == handle; it = by_handle_.erase(it)) {
      const File file{inode, it->second};
      by_file_.erase({file, handle});
      const auto other = by_file_.lower_bound({file, 0});
      if (other == by_file_.end() || other->first != file) owners.push_back(it->second);
    }
    return owners;
  }

 private:
  using File = std::pair<InodeId, std::uint64_t>;  // and owner

  std::mutex mutex_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_handle_;  // handle, owner
  std::set<std::pair<File, std::uint64_t>> by_file_;             // of the same
};

}  // namespace kvsyncfs
