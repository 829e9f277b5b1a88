// The dispatcher: which commands of an entry are due, and the cursor that moves with each of them.
#include "engine/catalog/apply.h"

#include <algorithm>

#include "engine/catalog/catalog_impl.h"

namespace kvsyncfs {

namespace {

/// What the cursor is once command `index` of `position` is done. It counts a position as applied
/// only with its last command.
Cursor cursor_after(Position position, std::uint32_t index, bool last) {
  Cursor cursor;
  cursor.applied.value = last ? position.value : position.value - 1;
  cursor.next_command = last ? 0 : index + 1;
  return cursor;
}

}  // namespace

Result<std::vector<CommandResult>> RocksCatalog::apply(Position position,
                                                       const Transaction& transaction) {
  if (failed_) return *failed_;
  const auto count = static_cast<std::uint32_t>(transaction.commands.size());
  std::vector<CommandResult> results(count);
  if (position <= applied()) return results;
  if (position.value != applied().value + 1 || count > kCommandsPerTransactionMax)
    return Error{Code::kCorrupt,
                 "log entry " + std::to_string(position.value) + " does not follow"};
  if (transaction.origin && has_had(*transaction.origin)) {
    const Error repeated{Code::kStale, "request repeated"};
    auto result = skip_failed(repeated, cursor_after(position, 0, true), true, {});
    if (!result) return failed_.emplace(result.error());
    std::fill(results.begin(), results.end(), *result);
    note_applied(position);
    return results;
  }
  for (std::uint32_t i = tables_->cursor().next_command; i < count; ++i) {
    auto result = apply_one(position, i, transaction);
    if (!result) return failed_.emplace(result.error());
    results[i] = std::move(*result);
  }
  if (count == 0) {
    auto result =
        skip_failed(Code::kInvalid, cursor_after(position, 0, true), true, transaction.origin);
    if (!result) return failed_.emplace(result.error());
  }
  note_applied(position);
  return results;
}

void RocksCatalog::note_applied(Position position) {
  constexpr std::size_t kKept = 16;
  if (options_.keeps_history && position.value % kHistoryPeriod == 0) {
    std::lock_guard lock(history_mutex_);
    history_.push_back({position, tables_->cursor().history});
    if (history_.size() > kKept) history_.pop_front();
  }
  applied_.store(position.value, std::memory_order_release);
}

/// The number is noted with the last command, so a transaction whose first commands are in already
/// is not taken for its own repetition.
bool RocksCatalog::has_had(const Origin& origin) const {
  const auto session = tables_->session(origin.node);
  return session && session->lives() && session->incarnation == origin.incarnation &&
         origin.request <= session->last_request;
}

Result<CommandResult> RocksCatalog::apply_one(Position position, std::uint32_t index,
                                              const Transaction& transaction) {
  batch_.Clear();
  const bool last = index + 1 == transaction.commands.size();
  const Cursor cursor = cursor_after(position, index, last);
  CommandRun run(*tables_, batch_, position, index);
  Status verdict;
  if (transaction.origin) verdict = run.enter(*transaction.origin);
  if (verdict)
    verdict = std::visit([&run](const auto& c) { return run_command(run, c); },
                         transaction.commands[index]);
  if (!verdict) return skip_failed(verdict.error(), cursor, last, transaction.origin);
  if (last && transaction.origin) run.note_request(*transaction.origin);
  KVSYNCFS_TRY(run.commit(cursor));
  if (extent_observer_)
    for (const ExtentChange& change : run.extent_changes()) extent_observer_(change);
  if (inode_observer_)
    for (const StagedInode& staged : run.inodes())
      if (staged.state != StagedInode::State::kRead) inode_observer_(staged.id);
  return std::move(run.result);
}

/// What a command says of the catalog, as every replica of it says. That this one cannot read a
/// record is none: another one can, and all later commands would stand on different states. fsck
/// passes over commands that meet damage, so that it comes to where it can mend.
bool RocksCatalog::is_verdict(Code code) const {
  if (code == Code::kCorrupt) return for_check_;
  return code != Code::kIo && code != Code::kNoMemory && code != Code::kNewerFormat;
}

/// A command that fails changes nothing, so running it again would fail again: only the last one of
/// an entry has to move the cursor on disk, and to note the request.
Result<CommandResult> RocksCatalog::skip_failed(const Error& error, const Cursor& cursor, bool last,
                                                const std::optional<Origin>& origin) {
  if (!is_verdict(error.code)) return error;
  if (last) {
    batch_.Clear();
    CommandRun nothing(*tables_, batch_, {}, 0);
    if (origin) nothing.note_request(*origin);
    KVSYNCFS_TRY(nothing.commit(cursor));
  }
  CommandResult result;
  result.status = error;
  return result;
}

}  // namespace kvsyncfs
