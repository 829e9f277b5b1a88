// What the catalog keeps of the nodes of a cluster. A session is known from the log alone: nothing
// else in the catalog says what a damaged record was.
#include <algorithm>

#include "engine/catalog/check.h"
#include "engine/catalog/locks.h"

namespace kvsyncfs {

void CatalogCheck::visit_session(std::string_view key, std::string_view value) {
  has_sessions_ = true;
  if (key.size() == kKeyPrefixSize && decode_session(value)) return;
  problem(Mends::kNo, Of::kCatalog, 0, "the session of node {} does not decode",
          number_in_key(key, 0));
}

/// Nothing else in the catalog says what it kept; without it the segments go.
void CatalogCheck::visit_hold(std::string_view key, std::string_view value) {
  if (!decode_hold(value))
    problem(Mends::kNo, Of::kCatalog, 0, "the hold {} does not decode", key.substr(1));
}

void CatalogCheck::check_lock(InodeId id, const FileLock& lock) {
  const auto sessions = tables_.sessions();
  const bool lives = std::any_of(sessions.begin(), sessions.end(), [&](const auto& known) {
    return known.second.lives() && known.second.session == lock.owner.session;
  });
  if (!lives)
    problem(Mends::kNo, Of::kInode, id.value, "session {} has a lock and does not live",
            lock.owner.session.value);
}

/// A table says who may go on; so one that is wrong is left to the nodes that know.
void CatalogCheck::visit_locks(std::string_view key, std::string_view value) {
  const InodeId id{number_in_key(key, 0)};
  const auto kind = static_cast<LockKind>(number_in_key(key, 1));
  const auto table = decode_lock_table(value);
  if (!table || key != lock_key(id, kind).view()) {
    has_damaged_locks_ = true;
    return problem(Mends::kNo, Of::kInode, id.value, "its locks do not decode");
  }
  if (!inodes_.contains(id)) {
    problem(Mends::kYes, Of::kInode, id.value, "has locks and does not exist");
    return mending_.erase(key);
  }
  for (const FileLock& held : table->held) {
    check_lock(id, held);
    wanted_lock_index_[std::string(locked_key(held.owner.session, id, kind).view())] =
        encode_locked();
    if (first_conflict(*table, held) != nullptr)
      problem(Mends::kNo, Of::kInode, id.value, "the lock at {} conflicts with another one",
              held.start);
  }
  for (const LockWait& wait : table->waits) {
    check_lock(id, wait.wanted);
    wanted_lock_index_[std::string(locked_key(wait.wanted.owner.session, id, kind).view())] =
        encode_locked();
    if (kind == LockKind::kPosix)
      wanted_lock_index_[std::string(wait_key(wait.wanted.owner, wait.id).view())] =
          encode_wait(id);
    if (first_conflict(*table, wait.wanted) == nullptr)
      problem(Mends::kNo, Of::kInode, id.value, "wait {} waits for nobody", wait.id);
  }
}

void CatalogCheck::visit_lock_index(std::string_view key, std::string_view value) {
  lock_index_.emplace(key, value);
}

void CatalogCheck::settle_lock_index() {
  if (has_damaged_locks_) return;
  for (const auto& [key, value] : lock_index_) {
    if (wanted_lock_index_.contains(key)) continue;
    problem(Mends::kYes, Of::kCatalog, 0, "the index has a lock of session {} that does not exist",
            number_in_key(key, 0));
    mending_.erase(key);
  }
  for (const auto& [key, value] : wanted_lock_index_) {
    const auto found = lock_index_.find(key);
    if (found != lock_index_.end() && found->second == value) continue;
    problem(Mends::kYes, Of::kCatalog, 0, "a lock of session {} is not in the index",
            number_in_key(key, 0));
    mending_.put(key, value);
  }
}

}  // namespace kvsyncfs
