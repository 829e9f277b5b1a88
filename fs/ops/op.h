// One FUSE request from its handler's begin to its one reply, counted and
// timed.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>

#include "engine/base/buffer_pool.h"
#include "engine/base/gate.h"
#include "engine/engine.h"
#include "fs/attr.h"
#include "fs/handle_locks.h"
#include "fs/listing_bounds.h"
#include "fs/op_metrics.h"

namespace kvsyncfs {

class Session;

inline constexpr std::size_t kReadSizeMax = 1u << 20;  ///< as negotiated: max_pages of a request

/// The kernel keeps names and attributes this long on a lone node, where nothing else changes them;
/// in a cluster it asks for names each time, and keeps attributes while it can be told of changes.
inline constexpr double kCacheSeconds = 86400;

/// What every handler works with; fuse_req_userdata() of each request.
struct Face {
  Engine& engine;
  OpMetrics& metrics;
  bool atime = true;
  bool clustered = false;
  /// A file that is opened to bypass the kernel's pages can be mapped all the same. Set by the
  /// answer to INIT.
  std::atomic<bool> maps_direct_files = false;
  Session* session = nullptr;  ///< set by Session::mount, for its own callbacks
  BufferPool read_buffers{kReadSizeMax};
  ListingBounds listing_bounds{};
  HandleLocks handle_locks{};
  /// Replies from other threads than the session's; closed before the session goes.
  std::shared_ptr<Gate> late_replies = std::make_shared<Gate>();
  double cache_seconds() const { return clustered ? 0 : kCacheSeconds; }
  /// Of the attributes that are read after the call, for a request that names the inode: so the
  /// kernel has it in memory and sees from its count of changes when the answer comes too late.
  double keep_seconds(InodeId inode) const {
    return std::min(static_cast<double>(engine.keep_attributes(inode)) / 1e9, kCacheSeconds);
  }
};

class Op {
 public:
  Op(fuse_req_t req, OpKind kind)
      : req_(req),
        kind_(kind),
        face_(*static_cast<Face*>(fuse_req_userdata(req))),
        begin_(Clock::now()) {}
  ~Op() {
    const auto took = Clock::now() - begin_;
    face_.metrics.record(kind_, static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()),
                         failed_);
  }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  Engine& engine() { return face_.engine; }
  Face& face() { return face_; }
  const fuse_ctx& context() const { return *fuse_req_ctx(req_); }

  // Each is the one reply.
  void error(int error_number) {
    failed_ = true;
    fuse_reply_err(req_, error_number);
  }
  void error(const Error& e) { error(to_errno(e.code)); }
  /// The kernel does without this request from now on; not an error.
  void unimplemented() { fuse_reply_err(req_, ENOSYS); }
  void done(const Status& status) {
    if (!status) return error(status.error());
    fuse_reply_err(req_, 0);
  }
  void entry(const Result<Entry>& result);
  void looked_up(const Result<Entry>& found);
  void attributes(InodeId inode, const Result<Inode>& result, double keep_seconds) {
    if (!result) return error(result.error());
    const struct stat st = to_stat(inode, *result);
    fuse_reply_attr(req_, &st, keep_seconds);
  }
  void bytes(const void* data, std::size_t size) {
    fuse_reply_buf(req_, static_cast<const char*>(data), size);
  }
  fuse_req_t request() { return req_; }

 private:
  using Clock = std::chrono::steady_clock;
  fuse_req_t req_;
  const OpKind kind_;
  Face& face_;
  const Clock::time_point begin_;
  bool failed_ = false;
};

fuse_entry_param to_entry(const Face& face, InodeId inode, const Inode& attributes);
/// A new inode of the request's caller.
NewNode new_node(const fuse_ctx& caller, mode_t mode);
inline InodeId id(fuse_ino_t ino) { return InodeId{ino}; }

/// By chmod(2)'s rule: the caller's group or one of its supplementary ones.
bool is_in_group(Op& op, gid_t group);
/// Takes set-ID bits and capabilities from a file whose bytes somebody without privilege is about
/// to change, also from what the kernel has in its cache. Errors: those of
/// Engine::set_attributes().
Status clear_privileges(Op& op, InodeId inode);

// What each file of ops/ offers to the table.
void add_lookup_ops(fuse_lowlevel_ops& ops);
void add_name_ops(fuse_lowlevel_ops& ops);
void add_attr_ops(fuse_lowlevel_ops& ops);
void add_dir_ops(fuse_lowlevel_ops& ops);
void add_data_ops(fuse_lowlevel_ops& ops);
void add_lock_ops(fuse_lowlevel_ops& ops);
void add_space_ops(fuse_lowlevel_ops& ops);
void add_xattr_ops(fuse_lowlevel_ops& ops);
void add_ioctl_ops(fuse_lowlevel_ops& ops);

}  // namespace kvsyncfs
