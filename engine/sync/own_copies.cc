#include "engine/sync/own_copies.h"

namespace kvsyncfs {

Status mend_own_copy(SegmentStore& store, const HeldLength& held_length, SegmentId segment,
                     std::uint64_t page, Bytes batch) {
  if (const Status there = store.check_file(segment); !there) {
    if (there.error().code != Code::kNotFound) return there;
    KVSYNCFS_ASSIGN(const std::uint64_t length, held_length(segment));
    const Status made = store.make_anew(segment, length);
    if (!made && made.error().code != Code::kExists) return made;
    // Who had to remove the file meanwhile found none.
    if (const auto still = held_length(segment); !still) {
      KVSYNCFS_TRY(store.remove(segment));
      return still.error();
    }
  }
  return store.mend_batch(segment, page, batch);
}

}  // namespace kvsyncfs
