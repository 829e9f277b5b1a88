// Two sessions and two files, and short words for what owners do with locks.
#pragma once

#include "engine/catalog/locks.h"
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {

/// An owner is a number: even ones are of session A, odd ones of session B.
class LockTest : public CatalogTest {
 protected:
  LockTest() {
    f = catalog.file("f");
    g = catalog.file("g");
    for (const NodeId node : {kA, kB}) join(node);
  }
  void join(NodeId node) {
    ++incarnation_;
    sessions_[node.value] = catalog.run(JoinCommand{node, {incarnation_}, 0, 5000}).session;
    incarnations_[node.value] = {incarnation_};
  }
  CommandResult end(NodeId node) {
    return catalog.run(EndCommand{node, incarnations_[node.value]});
  }
  static NodeId node_of(std::uint64_t owner) { return owner % 2 == 0 ? kA : kB; }
  LockOwner owner(std::uint64_t number) const { return {sessions_[node_of(number).value], number}; }
  Origin origin(std::uint64_t owner) {
    return {node_of(owner), incarnations_[node_of(owner).value], ++request_};
  }

  CommandResult acquire(std::uint64_t owner, InodeId inode, LockType type, std::uint64_t start,
                        std::uint64_t end, bool wait, LockKind kind = LockKind::kPosix) {
    return catalog.run(AcquireLockCommand{inode, kind, type, owner, start, end, 1, wait},
                       origin(owner));
  }
  CommandResult release(std::uint64_t owner, InodeId inode, std::uint64_t start = 0,
                        std::uint64_t end = kLockEndMax, LockKind kind = LockKind::kPosix) {
    return catalog.run(ReleaseLockCommand{inode, kind, owner, start, end}, origin(owner));
  }
  CommandResult cancel(std::uint64_t owner, InodeId inode, std::uint64_t wait,
                       LockKind kind = LockKind::kPosix) {
    return catalog.run(CancelLockCommand{inode, kind, wait}, origin(owner));
  }
  static std::optional<Code> code(const CommandResult& result) {
    if (result.status) return std::nullopt;
    return result.status.error().code;
  }
  static std::vector<std::uint64_t> granted(const CommandResult& result) {
    std::vector<std::uint64_t> waits;
    for (const GrantedLock& grant : result.granted) waits.push_back(grant.wait);
    return waits;
  }
  LockTable table(InodeId inode, LockKind kind = LockKind::kPosix) {
    return catalog->locks(inode, kind).value();
  }
  /// "2:x0-9 3:s20-29", in the table's order.
  std::string held(InodeId inode, LockKind kind = LockKind::kPosix) {
    std::string text;
    for (const FileLock& lock : table(inode, kind).held)
      text += (text.empty() ? "" : " ") + std::to_string(lock.owner.number) +
              (lock.type == LockType::kShared ? ":s" : ":x") + std::to_string(lock.start) + "-" +
              (lock.end == kLockEndMax ? "" : std::to_string(lock.end));
    return text;
  }

  static constexpr NodeId kA{1}, kB{2};
  static constexpr LockType kShared = LockType::kShared, kExclusive = LockType::kExclusive;
  InodeId f, g;

 private:
  SessionId sessions_[3];
  Incarnation incarnations_[3];
  std::uint64_t incarnation_ = 0, request_ = 0;
};

}  // namespace kvsyncfs
