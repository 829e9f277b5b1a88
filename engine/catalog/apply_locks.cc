// Locks of a cluster: who gets them, who waits, and what a release, a signal or an End gives away.
#include <algorithm>
#include <set>

#include "engine/catalog/apply.h"
#include "engine/catalog/locks.h"

namespace kvsyncfs {

namespace {

std::set<SessionId> sessions_in(const LockTable& table) {
  std::set<SessionId> sessions;
  for (const FileLock& held : table.held) sessions.insert(held.owner.session);
  for (const LockWait& wait : table.waits) sessions.insert(wait.wanted.owner.session);
  return sessions;
}

bool waits_in(const LockTable& table, std::uint64_t id) {
  return std::any_of(table.waits.begin(), table.waits.end(),
                     [&](const LockWait& wait) { return wait.id == id; });
}

/// The table and the two indexes over all tables follow from `now`.
void put_table(CommandRun& run, InodeId inode, LockKind kind, const LockTable& was,
               const LockTable& now) {
  if (now.empty()) {
    run.erase(lock_key(inode, kind));
  } else {
    run.put(lock_key(inode, kind), encode(now));
  }
  const auto had = sessions_in(was), has = sessions_in(now);
  for (const SessionId session : has)
    if (!had.contains(session)) run.put(locked_key(session, inode, kind), encode_locked());
  for (const SessionId session : had)
    if (!has.contains(session)) run.erase(locked_key(session, inode, kind));
  if (kind != LockKind::kPosix) return;
  for (const LockWait& wait : now.waits)
    if (!waits_in(was, wait.id)) run.put(wait_key(wait.wanted.owner, wait.id), encode_wait(inode));
  for (const LockWait& wait : was.waits)
    if (!waits_in(now, wait.id)) run.erase(wait_key(wait.wanted.owner, wait.id));
}

/// Grants what can be granted, writes the table, and tells of the grants.
void settle(CommandRun& run, InodeId inode, LockKind kind, const LockTable& was, LockTable& now) {
  for (const LockWait& wait : grant(now))
    run.result.granted.push_back({inode, kind, wait.id, wait.wanted.owner});
  put_table(run, inode, kind, was, now);
}

/// Errors: kInvalid.
Status check_range(LockKind kind, std::uint64_t start, std::uint64_t end) {
  if (start > end || end > kLockEndMax) return Code::kInvalid;
  if (kind == LockKind::kFlock && (start != 0 || end != kLockEndMax)) return Code::kInvalid;
  return {};
}

void add_owners_in_the_way(const LockTable& table, const FileLock& wanted,
                           std::vector<LockOwner>& owners) {
  for (const FileLock& held : table.held)
    if (conflicts(wanted, held)) owners.push_back(held.owner);
}

/// Whether someone whom `wanted` would wait for waits, over others or not, for its owner. A search
/// that has looked at kDeadlockOwnersMax owners ends: then it waits, and a signal can end that.
Result<bool> closes_cycle(const CommandRun& run, const LockTable& table, const FileLock& wanted) {
  std::vector<LockOwner> queue;
  std::set<LockOwner> seen;
  add_owners_in_the_way(table, wanted, queue);
  for (std::size_t i = 0; i < queue.size() && seen.size() < kDeadlockOwnersMax; ++i) {
    const LockOwner owner = queue[i];
    if (owner == wanted.owner) return true;
    if (!seen.insert(owner).second) continue;
    KVSYNCFS_ASSIGN(const auto waits, run.tables().waits_of(owner));
    for (const auto& [id, inode] : waits) {
      KVSYNCFS_ASSIGN(const LockTable other, run.tables().locks(inode, LockKind::kPosix));
      for (const LockWait& wait : other.waits)
        if (wait.id == id) add_owners_in_the_way(other, wait.wanted, queue);
    }
  }
  return false;
}

/// Puts `wanted` into the queue of `table`. Errors: kDeadlock.
Status queue_up(CommandRun& run, LockKind kind, LockTable& table, const FileLock& wanted) {
  if (kind == LockKind::kPosix) {
    KVSYNCFS_ASSIGN(const bool cycle, closes_cycle(run, table, wanted));
    if (cycle) return Code::kDeadlock;
  } else {
    unlock(table, wanted.owner, 0, kLockEndMax);
  }
  table.waits.push_back({run.new_id(), wanted});
  run.result.wait = run.new_id();
  return {};
}

}  // namespace

Status run_command(CommandRun& run, const AcquireLockCommand& c) {
  if (!run.session()) return Code::kInvalid;
  KVSYNCFS_TRY(check_range(c.kind, c.start, c.end));
  KVSYNCFS_TRY(run.load(c.inode));
  KVSYNCFS_ASSIGN(const LockTable was, run.tables().locks(c.inode, c.kind));
  LockTable now = was;
  const FileLock wanted{{*run.session(), c.owner}, c.type, c.start, c.end, c.pid};
  if (first_conflict(now, wanted) == nullptr) {
    lock(now, wanted);
  } else if (!c.wait) {
    return Code::kWouldBlock;
  } else {
    KVSYNCFS_TRY(queue_up(run, c.kind, now, wanted));
  }
  if (now.size() > std::max(kLocksPerFileMax, was.size())) return Code::kNoLocks;
  settle(run, c.inode, c.kind, was, now);
  return {};
}

Status run_command(CommandRun& run, const ReleaseLockCommand& c) {
  if (!run.session()) return Code::kInvalid;
  KVSYNCFS_TRY(check_range(c.kind, c.start, c.end));
  KVSYNCFS_ASSIGN(const LockTable was, run.tables().locks(c.inode, c.kind));
  LockTable now = was;
  unlock(now, {*run.session(), c.owner}, c.start, c.end);
  if (now == was) return {};
  if (now.size() > std::max(kLocksPerFileMax, was.size())) return Code::kNoLocks;
  settle(run, c.inode, c.kind, was, now);
  return {};
}

Status run_command(CommandRun& run, const CancelLockCommand& c) {
  if (!run.session()) return Code::kInvalid;
  KVSYNCFS_ASSIGN(const LockTable was, run.tables().locks(c.inode, c.kind));
  LockTable now = was;
  const auto is_it = [&](const LockWait& wait) {
    return wait.id == c.wait && wait.wanted.owner.session == *run.session();
  };
  if (std::erase_if(now.waits, is_it) == 0) return Code::kNotFound;
  put_table(run, c.inode, c.kind, was, now);
  return {};
}

Status end_locks(CommandRun& run, SessionId session) {
  KVSYNCFS_ASSIGN(const auto tables, run.tables().locked_by(session));
  for (const auto& [inode, kind] : tables) {
    KVSYNCFS_ASSIGN(const LockTable was, run.tables().locks(inode, kind));
    LockTable now = was;
    drop_session(now, session);
    settle(run, inode, kind, was, now);
  }
  return {};
}

Result<bool> is_locked(CommandRun& run, InodeId inode) {
  if (run.session_count() == 0) return false;
  KVSYNCFS_ASSIGN(const LockTable flocks, run.tables().locks(inode, LockKind::kFlock));
  KVSYNCFS_ASSIGN(const LockTable ranges, run.tables().locks(inode, LockKind::kPosix));
  return !flocks.empty() || !ranges.empty();
}

}  // namespace kvsyncfs
