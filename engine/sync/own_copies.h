// Mends this node's own copy of a segment, and makes it anew where its file is gone. Thread: any.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/store/segment_store.h"

namespace kvsyncfs {

/// Bytes of a segment that is sealed and that this node is to hold. Errors: kNotFound (it is not
/// so), those of the catalog.
using HeldLength = std::function<Result<std::uint64_t>(SegmentId)>;

/// Writes a batch anew; into a new file where there is none and should be one: its other batches
/// are then bad until they are mended as well. Errors: those of SegmentStore::mend_batch and
/// make_anew, save kExists; those of `held_length`.
Status mend_own_copy(SegmentStore& store, const HeldLength& held_length, SegmentId segment,
                     std::uint64_t page, Bytes batch);

}  // namespace kvsyncfs
