// What locking does to one table; pure. fcntl(2): ranges of an owner split, merge and change their
// type; owners conflict where they share a byte and one is exclusive. Thread: values, any.
#pragma once

#include <vector>

#include "engine/format/lock_table.h"

namespace kvsyncfs {

/// Whether `wanted` has to wait for `held`.
bool conflicts(const FileLock& wanted, const FileLock& held);
/// The held lock that is in the way of `wanted` and begins first; nullptr: none. Into `table`.
const FileLock* first_conflict(const LockTable& table, const FileLock& wanted);
/// [start, end] is nobody's of `owner`.
void unlock(LockTable& table, const LockOwner& owner, std::uint64_t start, std::uint64_t end);
/// The range becomes the owner's, of this type; what touches it and is alike becomes one with it.
/// Requires: no conflict.
void lock(LockTable& table, const FileLock& wanted);
/// Gives locks to those who wait and can have them, in the order of their coming, until nobody can.
/// A wait is passed by later ones that do not conflict with what is held.
std::vector<LockWait> grant(LockTable& table);
/// Everything of the session, held or waited for.
void drop_session(LockTable& table, SessionId session);

}  // namespace kvsyncfs
