// What makes umount(8) find our helper. Given an absolute path, umount(8) of util-linux 2.38 asks
// statfs(2) for the type, hears "fuse" and passes over umount.fuse.kvsyncfs. Where libmount's own
// table (/run/mount/utab) has a line for the mount point, it reads the whole type in
// /proc/self/mountinfo instead. So each mount gets such a line, as long as it lasts. mount(8) and
// umount(8), which own the table, write it; they touch nothing of the mount.
// Thread: any. Both wait 5 s at most.
#pragma once

#include <string>

#include "engine/base/error.h"

namespace kvsyncfs {

/// `source` and `mountpoint` as the kernel's table has them. Errors: kIo, kTimeout.
Status add_helper_entry(const std::string& source, const std::string& mountpoint);
/// A line that is not there is no error. Errors: kIo, kTimeout.
Status drop_helper_entry(const std::string& mountpoint);

}  // namespace kvsyncfs
