#include "engine/catalog/locks.h"

#include <algorithm>

namespace kvsyncfs {

namespace {

bool overlap(const FileLock& a, const FileLock& b) { return a.start <= b.end && b.start <= a.end; }

bool before(const FileLock& a, const FileLock& b) {
  return a.owner != b.owner ? a.owner < b.owner : a.start < b.start;
}

/// One could be part of the other: `a` ends right before `b`.
bool meet(const FileLock& a, const FileLock& b) {
  return a.owner == b.owner && a.type == b.type && a.end + 1 == b.start;
}

}  // namespace

bool conflicts(const FileLock& wanted, const FileLock& held) {
  return wanted.owner != held.owner && overlap(wanted, held) &&
         (wanted.type == LockType::kExclusive || held.type == LockType::kExclusive);
}

const FileLock* first_conflict(const LockTable& table, const FileLock& wanted) {
  const FileLock* first = nullptr;
  for (const FileLock& held : table.held)
    if (conflicts(wanted, held) && (first == nullptr || held.start < first->start)) first = &held;
  return first;
}

void unlock(LockTable& table, const LockOwner& owner, std::uint64_t start, std::uint64_t end) {
  std::vector<FileLock> left;
  left.reserve(table.held.size() + 1);
  for (const FileLock& held : table.held) {
    if (held.owner != owner || held.start > end || held.end < start) {
      left.push_back(held);
      continue;
    }
    if (held.start < start) {
      left.push_back(held);
      left.back().end = start - 1;
    }
    if (held.end > end) {
      left.push_back(held);
      left.back().start = end + 1;
    }
  }
  table.held = std::move(left);
}

void lock(LockTable& table, const FileLock& wanted) {
  unlock(table, wanted.owner, wanted.start, wanted.end);
  auto at = std::lower_bound(table.held.begin(), table.held.end(), wanted, before);
  at = table.held.insert(at, wanted);
  if (const auto next = at + 1; next != table.held.end() && meet(*at, *next)) {
    at->end = next->end;
    table.held.erase(next);
  }
  if (at != table.held.begin() && meet(*(at - 1), *at)) {
    (at - 1)->end = at->end;
    (at - 1)->pid = at->pid;
    table.held.erase(at);
  }
}

std::vector<LockWait> grant(LockTable& table) {
  std::vector<LockWait> granted;
  const auto can_have = [&](const LockWait& wait) {
    return first_conflict(table, wait.wanted) == nullptr;
  };
  // A grant may turn an exclusive lock of its owner into a shared one, so the first ones are looked
  // at again after each.
  for (;;) {
    const auto next = std::find_if(table.waits.begin(), table.waits.end(), can_have);
    if (next == table.waits.end()) return granted;
    granted.push_back(*next);
    table.waits.erase(next);
    lock(table, granted.back().wanted);
  }
}

void drop_session(LockTable& table, SessionId session) {
  std::erase_if(table.held, [&](const FileLock& l) { return l.owner.session == session; });
  std::erase_if(table.waits, [&](const LockWait& w) { return w.wanted.owner.session == session; });
}

}  // namespace kvsyncfs
