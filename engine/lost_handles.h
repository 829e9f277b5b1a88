// What handles have lost with a session of this node that ended under them (P4). A handle whose
// file was locked here answers kIo until it is closed, since others may have had the lock
// meanwhile; one whose file was removed and freed, kStale; bytes that are gone are told once to
// each handle that was open. Thread: any; one leaf mutex, which nobody takes while nothing is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

class LostHandles {
 public:
  /// Names a handle that is opened now. Never 0.
  std::uint64_t next_handle();
  /// Handles that are open on the file now are concerned, and no later ones.
  void lock_lost(InodeId file);
  void bytes_lost(InodeId file);
  void file_lost(InodeId file);
  /// Errors: kIo, kStale. 0 is a handle that lost nothing.
  Status check(InodeId file, std::uint64_t handle) const;
  /// For who asks what became of its bytes: tells also of those, once. Errors: kIo, kStale.
  Status check_bytes(InodeId file, std::uint64_t handle);
  /// No handle is open on the file.
  void closed(InodeId file);

 private:
  struct Lost {
    std::uint64_t lock_up_to = 0, bytes_up_to = 0, file_up_to = 0;  ///< handles; 0: none
    std::unordered_set<std::uint64_t> told;                         ///< of the bytes
  };
  static Status check(const Lost& lost, std::uint64_t handle);
  Lost& lost_of(InodeId file);  ///< mutex_ is held

  std::atomic<bool> is_any_ = false;
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::unordered_map<InodeId, Lost> lost_;
};

}  // namespace kvsyncfs
