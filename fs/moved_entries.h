// Names under which another node of a cluster has moved a directory away: the kernel is told to
// forget them, in a thread of its own, for it waits there for whoever changes the parent directory.
//
// It would find out by itself, save in one place: a rename from folder to folder that names such a
// directory by its new name, without a look at it before, meets the old entry under a lock that it
// would need to drop it, and fails with ESTALE.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

/// Thread: any; stop() and the destructor one.
class MovedEntries {
 public:
  explicit MovedEntries(std::function<void(InodeId parent, const std::string& name)> forget)
      : forget_(std::move(forget)) {}
  ~MovedEntries() { stop(); }
  MovedEntries(const MovedEntries&) = delete;
  MovedEntries& operator=(const MovedEntries&) = delete;

  /// Errors: kNoMemory.
  Status start();
  /// Does not wait. Of very many the oldest are passed over.
  void add(InodeId parent, std::string_view name);
  /// Waits for the one that is being forgotten, while requests are served; no other one is.
  void stop();

 private:
  struct Name {
    InodeId parent;
    std::string name;
  };
  void run();

  const std::function<void(InodeId, const std::string&)> forget_;
  std::mutex mutex_;  // a leaf; guards the next three
  std::condition_variable changed_;
  std::deque<Name> names_;
  bool is_stopped_ = false;
  std::thread thread_;
};

}  // namespace kvsyncfs
