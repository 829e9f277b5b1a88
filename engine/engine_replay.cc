// Rebuilds the write buffer from the log after a crash.
//
// Bytes that an fsync put into the log (WriteInline) are dirty until a WriteExtents puts them in
// place. The catalog knows nothing of them, so replay follows, command by command, what happened to
// them: a write fills the buffer; extents, a cut, a hole or a clone over them empty it; a reclaimed
// inode drops it. Entries that the catalog has already are followed too, since the checkpoint that
// trims the log waits for these flushes.
#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;
}  // namespace

void EngineImpl::replay(const Transaction& transaction) {
  const auto drop = [this](InodeId inode, std::uint64_t begin, std::uint64_t end) {
    if (LiveInodePtr live = live_.find(inode)) {
      live->dirty.drop(begin, end);
      settle(*live);
    }
  };
  const Overloaded follow{
      [&](const WriteInlineCommand& c) {
        LiveInodePtr live = live_.get_or_add(c.inode);
        std::unique_lock lock(live->mutex);
        for (const auto& piece : c.pieces)
          live->dirty.write(piece.file_offset, as_bytes(piece.bytes));
        live->dirty.mark_logged();
        note_dirty(live);
        settle(*live);
      },
      [&](const WriteExtentsCommand& c) {
        for (const Extent& e : c.extents) drop(c.inode, e.file_offset, e.file_end());
      },
      [&](const SetAttrCommand& c) {
        if (c.size) drop(c.inode, *c.size, kFileSizeMax);
      },
      [&](const AllocateCommand& c) {
        if (c.mode != AllocateMode::kReserve && c.mode != AllocateMode::kReserveKeepSize)
          drop(c.inode, c.offset, c.offset + c.length);
      },
      [&](const CloneRangeCommand& c) {
        drop(c.target, c.target_offset, c.target_offset + c.length);
      },
      [&](const ReclaimCommand& c) { drop(c.inode, 0, kFileSizeMax); },
      [](const auto&) {},
  };
  for (const Command& command : transaction.commands) std::visit(follow, command);
}

}  // namespace kvsyncfs
