// statx(2) with more than stat(2) tells, which is the birth time: a request of newer kernels
// (FUSE 7.39) that libfuse 3.14 does not know and would refuse. It is answered before libfuse sees
// it. Thread: any.
#pragma once

#include <cstddef>

#include "fs/ops/op.h"

namespace kvsyncfs {

/// Answers `request`, just read from `fd`, if it is a STATX; returns whether it was.
bool answer_statx(Face& face, int fd, const void* request, std::size_t size);

}  // namespace kvsyncfs
