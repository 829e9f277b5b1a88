#include "fs/op_metrics.h"

namespace kvsyncfs {

std::string_view to_string(OpKind op) {
  static constexpr std::array<std::string_view, kOpCount> kNames = {
      "lookup",          "forget",      "getattr",     "setattr", "readlink",
      "mknod",           "mkdir",       "unlink",      "rmdir",   "symlink",
      "rename",          "link",        "open",        "create",  "read",
      "write",           "flush",       "release",     "fsync",   "opendir",
      "readdir",         "readdirplus", "fsyncdir",    "statfs",  "setxattr",
      "getxattr",        "listxattr",   "removexattr", "ioctl",   "fallocate",
      "copy_file_range", "lseek",       "getlk",       "setlk",   "flock"};
  return kNames[static_cast<std::size_t>(op)];
}

}  // namespace kvsyncfs
