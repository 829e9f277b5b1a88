// Counts and latencies of FUSE operations. Recording is two relaxed atomic
// adds; counts never go back. Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "engine/base/histogram.h"

namespace kvsyncfs {

enum class OpKind : unsigned char {
  kLookup,
  kForget,
  kGetattr,
  kSetattr,
  kReadlink,
  kMknod,
  kMkdir,
  kUnlink,
  kRmdir,
  kSymlink,
  kRename,
  kLink,
  kOpen,
  kCreate,
  kRead,
  kWrite,
  kFlush,
  kRelease,
  kFsync,
  kOpendir,
  kReaddir,
  kReaddirplus,
  kFsyncdir,
  kStatfs,
  kSetxattr,
  kGetxattr,
  kListxattr,
  kRemovexattr,
  kIoctl,
  kFallocate,
  kCopyFileRange,
  kLseek,
  kGetlk,
  kSetlk,
  kFlock,
  kCount
};
inline constexpr std::size_t kOpCount = static_cast<std::size_t>(OpKind::kCount);
std::string_view to_string(OpKind op);

class OpMetrics {
 public:
  struct Op {
    std::atomic<std::uint64_t> errors = 0;  ///< replies with an errno, ENOENT of lookup included
    Histogram latency_ns;                   ///< from the handler's begin to its reply
  };
  void record(OpKind op, std::uint64_t latency_ns, bool failed) {
    Op& o = ops_[static_cast<std::size_t>(op)];
    o.latency_ns.record(latency_ns);
    if (failed) o.errors.fetch_add(1, std::memory_order_relaxed);
  }
  const Op& op(OpKind kind) const { return ops_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<Op, kOpCount> ops_;
};

}  // namespace kvsyncfs
