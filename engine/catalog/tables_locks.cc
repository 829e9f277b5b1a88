// Reads of the lock tables and of the indexes over them.
#include "engine/catalog/rocks_env.h"
#include "engine/catalog/tables.h"

namespace kvsyncfs {

Result<LockTable> Tables::locks(InodeId id, LockKind kind) const {
  KVSYNCFS_ASSIGN(const auto bytes, get(lock_key(id, kind).view()));
  if (!bytes) return LockTable{};
  return decode_lock_table(*bytes);
}

Result<std::vector<std::pair<InodeId, LockKind>>> Tables::locked_by(SessionId session) const {
  std::vector<std::pair<InodeId, LockKind>> found;
  KVSYNCFS_ASSIGN(auto it, iterators_->take());
  for (it->Seek(Key('k').number(session.value).view()); it->Valid(); it->Next())
    found.emplace_back(InodeId{number_in_key(it.key(), 1)},
                       static_cast<LockKind>(number_in_key(it.key(), 2)));
  if (!it->status().ok()) return from_rocks(it->status());
  return found;
}

Result<std::vector<std::pair<std::uint64_t, InodeId>>> Tables::waits_of(
    const LockOwner& owner) const {
  std::vector<std::pair<std::uint64_t, InodeId>> found;
  KVSYNCFS_ASSIGN(auto it, iterators_->take());
  for (it->Seek(wait_key(owner, 0).view()); it->Valid(); it->Next()) {
    if (number_in_key(it.key(), 1) != owner.number) break;
    KVSYNCFS_ASSIGN(const InodeId inode, decode_wait(it.value()));
    found.emplace_back(number_in_key(it.key(), 2), inode);
  }
  if (!it->status().ok()) return from_rocks(it->status());
  return found;
}

}  // namespace kvsyncfs
