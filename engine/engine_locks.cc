// Locks of a cluster: from the caller to the log, and from the log to the caller. ARCHITECTURE.md,
// "File locks are the kernel's".
#include <algorithm>

#include "engine/catalog/locks.h"
#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kPauseNs = 100'000'000;  // after a failure of the log
constexpr milliseconds kIdle{100};

}  // namespace

void EngineImpl::start_lock_tasks() {
  TaskRunner& tasks = cluster_->seams.tasks;
  // Two threads, so that no answer waits for another one's commit.
  tasks.start("lock-answers", [this] {
    if (failed_) cluster_->lock_waits.fail_all(Code::kIo);
    if (cluster_->session.is_out()) cluster_->lock_waits.session_ended();
    if (auto ended = cluster_->lock_waits.take_ended(kIdle)) answer_lock(*ended);
    return clock_.boot_ns();
  });
  tasks.start("lock-debts", [this] {
    const auto command = cluster_->lock_waits.take_owed(kIdle);
    const bool paid = !command || pay_lock_debt(*command);
    cluster_->lock_waits.paid();
    return paid ? clock_.boot_ns() : clock_.boot_ns() + kPauseNs;
  });
}

/// A node whose lease is in doubt may have lost the lock meanwhile.
void EngineImpl::answer_lock(const LockWaits::Ended& ended) {
  LockAnswer answer;
  answer.interrupted = ended.interrupted;
  answer.status = ended.status;
  const Incarnation granted = session();
  if (answer.status && !answer.interrupted) answer.status = may_answer();
  if (answer.status && !answer.interrupted && session() != granted)
    answer.status = Error(Code::kIo, "the lock was lost with the session");
  answer.pages_may_be_old = !cluster_->handles.has_right_pages(ended.inode);
  ended.done(answer);
}

/// Who has the lock next must find the bytes, so they go first.
bool EngineImpl::pay_lock_debt(const Command& command) {
  const auto* release = std::get_if<ReleaseLockCommand>(&command);
  const Status flushed = release != nullptr ? flush(release->inode) : Status{};
  const auto paid = flushed ? commit_one(command) : Result<CommandResult>(flushed.error());
  // Whoever waits no more has been granted the lock, and told.
  if (paid || paid.error().code == Code::kNotFound || failed_ || closed_) return true;
  cluster_->lock_waits.owe(command);
  return false;
}

/// `request`: its number if the command is of this session, else 0.
void EngineImpl::note_lock(const Command& command, const CommandResult& result,
                           std::uint64_t request) {
  LockWaits& waits = cluster_->lock_waits;
  if (request != 0 && std::holds_alternative<AcquireLockCommand>(command))
    waits.applied(request, result);
  if (const auto* c = std::get_if<CancelLockCommand>(&command); c && result.status)
    waits.cancelled(c->wait);
  for (const GrantedLock& granted : result.granted) waits.granted(granted.wait);
}

void EngineImpl::end_lock_waits() {
  cluster_->lock_waits.fail_all(Code::kShutdown);
  while (auto ended = cluster_->lock_waits.take_ended({})) ended->done({ended->status});
}

std::uint64_t EngineImpl::begin_lock(LockDone done) {
  return cluster_ ? cluster_->lock_waits.begin(std::move(done)) : 0;
}

void EngineImpl::lock(std::uint64_t request, const LockRange& range, LockType type, bool wait) {
  if (!cluster_) return;
  const AcquireLockCommand command{range.inode, range.kind, type,      range.owner,
                                   range.start, range.end,  range.pid, wait};
  LockWaits& waits = cluster_->lock_waits;
  const Status may = may_answer();
  const Incarnation asked = session();
  if (!waits.send(request, command)) return;
  if (!may) return waits.returned(request, may);
  if (waits.owes(range.inode, range.kind, range.owner))
    return waits.returned(request, Error(Code::kTimeout, "an earlier lock is not given back yet"));
  const auto sent = cluster_->session.commit(
      Transaction{{command}},
      {asked, [&](std::uint64_t number) { waits.numbered(request, number); }, {}});
  const Status status = !sent ? Status(sent.error()) : sent->front().status;
  waits.returned(request, status);
}

void EngineImpl::cancel_lock(std::uint64_t request) {
  if (cluster_) cluster_->lock_waits.cancel(request);
}

SessionId EngineImpl::own_session() const {
  const auto sessions = catalog_->sessions();
  const auto own = sessions.find(cluster_->seams.node);
  return own == sessions.end() ? SessionId{} : own->second.session;
}

Result<bool> EngineImpl::may_hold(const LockRange& range) {
  if (cluster_->lock_waits.is_on_its_way(range.inode, range.kind, range.owner)) return true;
  KVSYNCFS_ASSIGN(const LockTable table, catalog_->locks(range.inode, range.kind));
  if (table.held.empty()) return false;
  const LockOwner owner{own_session(), range.owner};
  return std::any_of(table.held.begin(), table.held.end(),
                     [&](const FileLock& held) { return held.owner == owner; });
}

Status EngineImpl::unlock(const LockRange& range) {
  if (!cluster_) return {};
  KVSYNCFS_ASSIGN(const bool held, may_hold(range));
  // Nor does a session hold what it held before its end, and its bytes are not there for others.
  if (!held) return may_answer();
  KVSYNCFS_TRY(flush(range.inode));
  const auto released =
      commit_one(ReleaseLockCommand{range.inode, range.kind, range.owner, range.start, range.end});
  return released ? Status{} : Status(released.error());
}

void EngineImpl::drop_locks(InodeId inode, LockKind kind, std::uint64_t owner) {
  if (!cluster_) return;
  const auto held = may_hold({inode, kind, owner});
  if (held && !*held) return;
  // A close says what became of the bytes, not of the locks; but those go after the bytes.
  const ReleaseLockCommand command{inode, kind, owner};
  if ((!flush(inode) || !commit_one(command)) && !failed_) cluster_->lock_waits.owe(command);
}

Result<std::optional<HeldLock>> EngineImpl::lock_in_the_way(const LockRange& range, LockType type) {
  if (!cluster_) return std::optional<HeldLock>();
  KVSYNCFS_TRY(may_answer());
  KVSYNCFS_ASSIGN(const LockTable table, catalog_->locks(range.inode, range.kind));
  const SessionId own = own_session();
  const FileLock wanted{{own, range.owner}, type, range.start, range.end, range.pid};
  const FileLock* held = first_conflict(table, wanted);
  if (held == nullptr) return std::optional<HeldLock>();
  const std::uint32_t pid = held->owner.session == own ? held->pid : 0;
  return std::optional(HeldLock{held->type, held->start, held->end, pid});
}

}  // namespace kvsyncfs
