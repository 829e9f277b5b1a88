// One FUSE session: mounts, serves with several threads, unmounts.
// Thread: one for mount, serve and the destructor; stop() from another while
// serve() runs.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fs/ops/op.h"
#include "fs/options.h"
#include "fs/running_requests.h"

namespace kvsyncfs {

class Session {
 public:
  /// Mounts. Errors: kIo and what mount(2) says, naming the mount point.
  static Result<std::unique_ptr<Session>> mount(Face& face, const MountOptions& options);
  /// Unmounts what is still there, save after an abort of the connection from outside: then the
  /// dead mount stays and fails, so that nobody writes into the folder below it unawares.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Serves until the file system is unmounted or stop() was called. Errors:
  /// kIo (the loop failed).
  Status serve();

  /// Ends serve(): writes the kernel's dirty pages back, unmounts (a busy mount
  /// is detached), and if the connection outlives that, or all of it takes
  /// longer than the time-out, leaves anyway.
  void stop();

  /// The kernel asks for the directory's entries again. From any thread, also in a handler: what it
  /// waits for is no request.
  void forget_listing(InodeId directory) {
    fuse_lowlevel_notify_inval_inode(session_, directory.value, 0, 0);  // ENOENT: none was kept
  }

  /// The kernel asks for the inode's attributes again; as above. False: it has no such inode.
  bool forget_attributes(InodeId inode) {
    return fuse_lowlevel_notify_inval_inode(session_, inode.value, -1, 0) == 0;
  }

  /// The kernel drops the file's pages, and writes back those that a mapping changed: not in a
  /// handler, since both may wait for requests.
  void forget_pages(InodeId inode) {
    fuse_lowlevel_notify_inval_inode(session_, inode.value, 0, 0);  // ENOENT: none were kept
  }

  /// The kernel has nothing under that name any more. Not in a handler: it waits for requests that
  /// change the directory.
  void forget_entry(InodeId directory, const std::string& name) {
    fuse_lowlevel_notify_inval_entry(session_, directory.value, name.data(),
                                     name.size());  // ENOENT: there was nothing
  }

  /// st_dev of the mount.
  std::uint64_t device() const { return device_; }

 private:
  explicit Session(bool clustered) : running_(clustered, is_killed) {}
  void tune_readahead() const;
  bool wait_for_end(std::chrono::nanoseconds time);
  void leave_loop();
  static ssize_t read_request(int fd, void* buffer, std::size_t size, void* user_data);
  static ssize_t write_reply(int fd, iovec* pieces, int count, void* user_data);

  RunningRequests running_;
  fuse_session* session_ = nullptr;
  std::shared_ptr<Gate> late_replies_;
  std::string mountpoint_;
  std::uint64_t device_ = 0;
  std::chrono::seconds timeout_{0};
  std::atomic<bool> init_answered_ = false;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  // Guarded by mutex_.
  bool stopped_ = false;
  bool ended_ = false;
  std::optional<pthread_t> loop_thread_;  // set while the loop runs
};

}  // namespace kvsyncfs
