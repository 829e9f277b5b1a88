// One FUSE session: mounts, serves with several threads, unmounts. Thread: one, but stop() from
// any.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/ops/op.h"
#include "fs/options.h"

namespace kvsyncfs {

class Session {
 public:
  /// Mounts. Errors: kIo and what mount(2) says, naming the mount point.
  static Result<std::unique_ptr<Session>> mount(Face& face, const MountOptions& options);
  ~Session();  ///< unmounts, detaching a busy mount
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Serves until the file system is unmounted, SIGTERM, SIGINT or stop(). Errors: kIo (the loop
  /// failed).
  Status serve();

  /// st_dev of the mount, read without asking the daemon itself.
  std::uint64_t device() const { return device_; }

 private:
  Session() = default;
  void tune_readahead() const;

  fuse_session* session_ = nullptr;
  std::string mountpoint_;
  std::uint64_t device_ = 0;
  bool handlers_set_ = false;
};

/// Device number of the mount at `path` from /proc/self/mountinfo (the topmost one), without
/// touching it: a mount whose daemon died or hangs answers no stat. Errors: kNotFound.
Result<std::uint64_t> mounted_device(const std::string& path);

}  // namespace kvsyncfs
