// Inode records as the kernel wants them. Pure.
#pragma once

#include <sys/stat.h>

#include "engine/format/records.h"

namespace kvsyncfs {

struct stat to_stat(InodeId id, const Inode& inode);

}  // namespace kvsyncfs
