// What becomes of a flush whose bytes lie in segments: its way through the log. ARCHITECTURE.md, "A
// flush lands once".
#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {

using Fate = SentFlush::Fate;

bool is_over(Fate fate) { return fate == Fate::kDone || fate == Fate::kRefused; }

/// Those bytes of the inode that have landed wait no longer.
void drop_landed(LiveInode& live, const SentFlush& flush) {
  for (std::size_t i = 0; i < flush.next; ++i)
    for (const Command& command : flush.transactions[i].commands) {
      const auto& written = std::get<WriteExtentsCommand>(command);
      if (written.inode != live.id) continue;
      for (const Extent& e : written.extents) live.flushing.drop(e.file_offset, e.file_end());
    }
}

}  // namespace

Status EngineImpl::settle_flush(const LiveInodePtr& live) {
  if (!live->sent) return {};
  auto [fate, status] = drive_flush(live->sent, deadline());
  KVSYNCFS_TRY(alive());
  take_outcome(live, fate);
  return is_over(fate) ? Status{} : status;
}

/// What was refused is dirty again.
void EngineImpl::take_outcome(const LiveInodePtr& live, Fate fate) {
  std::unique_lock lock(live->mutex);
  if (!is_over(fate)) note_dirty(live);  // the background asks again
  if (fate == Fate::kUnknown) return;
  if (fate == Fate::kRefused) {
    if (live->sent) drop_landed(*live, *live->sent);
    live->dirty.absorb_older(live->flushing);
    live->dirty_since_ns = live->flushing_since_ns.exchange(0);
    note_dirty(live);
  } else {
    live->flushing.clear();
    live->flushing_since_ns = 0;
    if (live->mtime == live->sent_mtime) live->mtime.reset();
  }
  if (is_over(fate)) live->sent.reset();
  settle(*live);
}

EngineImpl::FlushOutcome EngineImpl::drive_flush(const SentFlushPtr& flush, const Deadline& until) {
  std::unique_lock lock(flush->mutex, std::defer_lock);
  if (!until.lock(lock)) return {Fate::kUnknown, Error(Code::kTimeout, "a flush is on its way")};
  if (flush->sent) learn_fate(*flush);
  Status status{};
  while (status && !is_over(flush->fate)) status = commit_next(*flush, until);
  return {flush->fate, std::move(status)};
}

Status EngineImpl::commit_next(SentFlush& flush, const Deadline& until) {
  if (flush.next == flush.transactions.size() || flush.transactions[flush.next].commands.empty()) {
    flush.fate = Fate::kDone;
    flush.hold.end();
    return {};
  }
  const auto results = send_next(flush, until);
  if (!results) {
    learn_fate(flush);
    return results.error();
  }
  const auto& commands = flush.transactions[flush.next].commands;
  for (std::size_t i = 0; i < commands.size(); ++i)
    KVSYNCFS_TRY(
        bytes_committed(std::get<WriteExtentsCommand>(commands[i]).inode, (*results)[i].status));
  ++flush.next;
  flush.sent.reset();
  return {};
}

Result<std::vector<CommandResult>> EngineImpl::send_next(SentFlush& flush, const Deadline& until) {
  Transaction& next = flush.transactions[flush.next];
  if (!cluster_) return commit(next);
  KVSYNCFS_TRY(alive());
  if (!flush.sent) {
    const bool is_last = flush.next + 1 == flush.transactions.size();
    auto sent = cluster_->session.send(next, until,
                                       {flush.session, {}, is_last ? flush.has_landed : nullptr});
    if (!sent) return commit_failed(sent.error());
    flush.sent = std::move(*sent);
  }
  auto results = cluster_->session.finish(*flush.sent, until);
  return results ? std::move(results) : commit_failed(results.error());
}

/// What is surely not in the log is given up: its bytes find another place. So is the rest of a
/// flush whose session has ended, as its segments went with that.
void EngineImpl::learn_fate(SentFlush& flush) {
  if (is_over(flush.fate)) return;
  const auto fate = flush.sent ? cluster_->session.fate(*flush.sent) : NodeSession::Fate::kRefused;
  const bool is_last = flush.next + 1 == flush.transactions.size();
  if (fate == NodeSession::Fate::kUnknown) return;
  if (fate == NodeSession::Fate::kLanded && !is_last) {
    if (flush.session == cluster_->session.incarnation()) return;
    ++flush.next;
  }
  flush.fate = fate == NodeSession::Fate::kLanded && is_last ? Fate::kLanded : Fate::kRefused;
  flush.hold.end();
}

Status EngineImpl::learn_fates() {
  for (const LiveInodePtr& live : live_.all()) {
    {
      std::shared_lock lock(live->mutex);
      if (!live->sent) continue;
    }
    KVSYNCFS_ASSIGN(const auto no_flush, lock_flush_mutex(*live));
    if (!live->sent) continue;
    std::unique_lock lock(live->sent->mutex, std::defer_lock);
    if (!deadline().lock(lock)) return Error(Code::kTimeout, "a flush does not end");
    learn_fate(*live->sent);
    const Fate fate = live->sent->fate;
    lock.unlock();
    take_outcome(live, fate);
  }
  return {};
}

}  // namespace kvsyncfs
