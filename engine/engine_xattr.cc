// Extended attributes and access times.
#include <algorithm>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kAtimePeriodNs = 3'600'000'000'000;  // once an hour (P1)
constexpr std::size_t kAtimesMax = 65536;
constexpr std::int64_t kDaySeconds = 86400;
}  // namespace

Result<std::string> EngineImpl::xattr(InodeId inode, std::string_view name) {
  KVSYNCFS_TRY(may_answer());
  return catalog_->xattr(inode, name);
}

Result<std::vector<std::string>> EngineImpl::xattr_names(InodeId inode) {
  KVSYNCFS_TRY(may_answer());
  return catalog_->xattr_names(inode);
}

Status EngineImpl::set_xattr(InodeId inode, std::string_view name, std::string_view value,
                             XattrMode mode, bool clear_setgid) {
  KVSYNCFS_TRY(admit_growth());
  KVSYNCFS_TRY(commit_one(SetXattrCommand{inode, std::string(name), std::string(value), mode,
                                          clear_setgid, clock_.now()}));
  return {};
}

Status EngineImpl::remove_xattr(InodeId inode, std::string_view name) {
  KVSYNCFS_TRY(admit_change());
  KVSYNCFS_TRY(commit_one(RemoveXattrCommand{inode, std::string(name), clock_.now()}));
  return {};
}

/// relatime: atime moves if it is not later than mtime or ctime, or is a day old.
void EngineImpl::touch(InodeId inode) {
  if (options_.read_only) return;
  const auto current = attributes_of_open(inode);
  if (!current) return;
  const Timestamp now = clock_.now();
  const bool due = current->atime <= current->mtime || current->atime <= current->ctime ||
                   now.seconds - current->atime.seconds >= kDaySeconds;
  if (!due) return;
  std::lock_guard lock(atime_mutex_);
  if (atimes_.empty()) atimes_due_ns_ = clock_.boot_ns() + kAtimePeriodNs;
  atimes_.insert_or_assign(inode, now);
  if (atimes_.size() > kAtimesMax) atimes_due_ns_ = 0;
}

Status EngineImpl::commit_atimes(bool all) {
  std::unordered_map<InodeId, Timestamp> due;
  {
    std::lock_guard lock(atime_mutex_);
    if (atimes_.empty() || (!all && clock_.boot_ns() < atimes_due_ns_)) return {};
    due.swap(atimes_);
  }
  Transaction transaction;
  const auto send = [&]() -> Status {
    if (transaction.commands.empty()) return {};
    KVSYNCFS_TRY(
        commit(std::exchange(transaction, {})));  // an inode that is gone by now is no error
    return {};
  };
  for (const auto& [inode, time] : due) {
    SetAttrCommand command;
    command.inode = inode;
    command.atime = time;
    command.keep_ctime = true;
    command.time = time;
    transaction.commands.push_back(std::move(command));
    if (transaction.commands.size() == kCommandsPerTransactionMax) KVSYNCFS_TRY(send());
  }
  return send();
}

}  // namespace kvsyncfs
