// From the write buffer to segments and the log: bounds, flushes, fsync.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};
/// One flush takes about this much, so that locks are held for milliseconds.
constexpr std::uint64_t kFlushGroupBytes = 8u << 20;
constexpr std::size_t kFlushGroupInodes = 512;
/// Of one transaction, so that it fits into one entry of any log: about 330 KiB.
constexpr std::size_t kFlushExtentsMax = 8192;
/// An fsync of at most this much goes through the log: one disk write and one flush of the disk's
/// cache instead of two of each.
constexpr std::uint64_t kInlineBytesMax = 64u << 10;
/// Earlier than any ctime: a flush of bytes whose times are committed already must not stamp new
/// ones.
constexpr Timestamp kNoTime{std::numeric_limits<std::int64_t>::min(), 0};

Error no_session() { return {Code::kTimeout, "this node has no session, and is to join again"}; }
Error too_long() { return {Code::kTimeout, "another one's flush does not end"}; }

/// A run of dirty bytes that lies in one piece in memory.
struct Run {
  std::size_t inode;  // index in the group
  std::uint64_t file_offset;
  Bytes bytes;
};

struct Snapshot {
  std::optional<Timestamp> mtime;
  std::vector<Extent> extents;
};

/// Whole pages first, then the rest, so that the rest does not misalign them in the segment.
std::vector<Run> collect_runs(const std::vector<LiveInodePtr>& group) {
  std::vector<Run> whole, partial;
  for (std::size_t i = 0; i < group.size(); ++i) {
    group[i]->flushing.for_each([&](std::uint64_t offset, Bytes piece) {
      auto& runs = piece.size() == kPageSize ? whole : partial;
      if (!runs.empty() && runs.back().inode == i &&
          runs.back().file_offset + runs.back().bytes.size() == offset &&
          runs.back().bytes.data() + runs.back().bytes.size() == piece.data())
        runs.back().bytes =
            Bytes(runs.back().bytes.data(), runs.back().bytes.size() + piece.size());
      else
        runs.push_back({i, offset, piece});
    });
  }
  whole.insert(whole.end(), partial.begin(), partial.end());
  return whole;
}

void merge_adjacent(std::vector<Extent>& extents) {
  std::sort(extents.begin(), extents.end());
  std::vector<Extent> merged;
  for (const Extent& e : extents) {
    if (!merged.empty() && merged.back().file_end() == e.file_offset &&
        merged.back().segment == e.segment &&
        merged.back().segment_offset + merged.back().length == e.segment_offset)
      merged.back().length += e.length;
    else
      merged.push_back(e);
  }
  extents = std::move(merged);
}

/// What is dirty becomes what is flushed.
std::vector<Snapshot> freeze_dirty(const std::vector<LiveInodePtr>& group) {
  std::vector<Snapshot> snapshots(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    LiveInode& live = *group[i];
    std::unique_lock lock(live.mutex);
    live.listed = false;
    live.flushing.swap(live.dirty);
    live.flushing_since_ns = live.dirty_since_ns.exchange(0);
    snapshots[i].mtime = live.mtime;
  }
  return snapshots;
}

void add_extents(std::vector<Snapshot>& snapshots, const std::vector<Run>& runs,
                 const std::vector<Placed>& placed) {
  for (const Placed& p : placed)
    snapshots[runs[p.run].inode].extents.push_back(
        {runs[p.run].file_offset + p.run_offset, p.length, p.segment, p.segment_offset});
  for (Snapshot& s : snapshots) merge_adjacent(s.extents);
}

/// One WriteExtents command an inode; an inode of very many extents takes several, over more than
/// one transaction.
std::vector<Transaction> flush_transactions(const std::vector<LiveInodePtr>& group,
                                            std::span<const Snapshot> snapshots) {
  std::vector<Transaction> transactions(1);
  std::size_t room = kFlushExtentsMax;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Snapshot& s = snapshots[i];
    if (s.extents.empty() && !s.mtime) continue;  // an fsync was faster
    std::span<const Extent> rest(s.extents);
    do {
      if (room == 0) {
        transactions.emplace_back();
        room = kFlushExtentsMax;
      }
      const auto part = rest.first(std::min(rest.size(), room));
      transactions.back().commands.push_back(WriteExtentsCommand{
          group[i]->id, {part.begin(), part.end()}, s.mtime, false, s.mtime.value_or(kNoTime)});
      rest = rest.subspan(part.size());
      room -= part.size();
    } while (!rest.empty());
  }
  return transactions;
}

}  // namespace

FlushLocks::FlushLocks(std::vector<LiveInodePtr>& inodes) {
  std::sort(inodes.begin(), inodes.end(),
            [](const auto& a, const auto& b) { return a->id < b->id; });
  inodes.erase(std::unique(inodes.begin(), inodes.end()), inodes.end());
  for (const LiveInodePtr& live : inodes) locks_.emplace_back(live->flush_mutex, std::defer_lock);
}

Status FlushLocks::take(const Deadline& until) {
  for (auto& lock : locks_)
    if (!until.lock(lock)) return too_long();
  return {};
}

Result<std::unique_lock<std::timed_mutex>> EngineImpl::lock_flush_mutex(LiveInode& live) const {
  std::unique_lock lock(live.flush_mutex, std::try_to_lock);
  if (!lock && !deadline().lock(lock)) return too_long();
  return lock;
}

Result<std::unique_lock<std::timed_mutex>> EngineImpl::lock_flush(const LiveInodePtr& live) {
  KVSYNCFS_ASSIGN(auto lock, lock_flush_mutex(*live));
  KVSYNCFS_TRY(settle_flush(live));
  return lock;
}

void EngineImpl::note_dirty(const LiveInodePtr& live) {
  if (live->listed) return;
  live->listed = true;
  const std::uint64_t now_ns = clock_.boot_ns();
  if (live->dirty_since_ns == 0) live->dirty_since_ns = now_ns;
  std::lock_guard lock(dirty_mutex_);
  dirty_list_.emplace_back(now_ns, live);
}

void EngineImpl::settle(LiveInode& live) {
  const std::uint64_t frames = (live.dirty.page_count() + live.flushing.page_count()) * kPageSize;
  if (live.reserved_bytes > frames) {
    store_->unreserve(live.reserved_bytes - frames);
    live.reserved_bytes = frames;
  }
  const std::uint64_t before = live.counted_bytes;
  live.counted_bytes = frames;
  if (frames == 0) live.dirty_since_ns = live.flushing_since_ns = 0;
  if (frames == 0) live.overtaken = false;
  if (frames > before) {
    dirty_bytes_ += frames - before;
    if (dirty_bytes_ > options_.write_buffer_bytes / 4) wake();
  } else if (frames < before) {
    dirty_bytes_ -= before - frames;
    std::lock_guard lock(dirty_mutex_);
    buffer_room_.notify_all();
  }
}

std::vector<LiveInodePtr> EngineImpl::take_dirty(std::uint64_t dirty_since_ns) {
  std::vector<LiveInodePtr> taken;
  std::uint64_t bytes = 0;
  std::lock_guard lock(dirty_mutex_);
  while (!dirty_list_.empty() && dirty_list_.front().first <= dirty_since_ns &&
         bytes < kFlushGroupBytes && taken.size() < kFlushGroupInodes) {
    taken.push_back(std::move(dirty_list_.front().second));
    dirty_list_.pop_front();
    bytes += taken.back()->counted_bytes.load(std::memory_order_relaxed);
  }
  return taken;
}

/// Without a session what is appended could not be committed.
Status EngineImpl::may_flush() const {
  return cluster_ && cluster_->session.is_out() ? Status(no_session()) : Status{};
}

Status EngineImpl::flush_older_than(std::uint64_t dirty_since_ns) {
  for (;;) {
    KVSYNCFS_TRY(may_flush());
    std::vector<LiveInodePtr> group = take_dirty(dirty_since_ns);
    if (group.empty()) return {};
    {
      FlushLocks locks(group);
      if (Status taken = locks.take(deadline()); !taken) {
        list_again(group);
        return taken;
      }
      KVSYNCFS_TRY(flush_group(group));
    }
    for (LiveInodePtr& live : group) {
      const InodeId id = live->id;
      live.reset();
      live_.drop_if_idle(id);
    }
  }
}

Status EngineImpl::flush_everything() {
  // What comes to be dirty from now on is not waited for: writers would keep this going.
  KVSYNCFS_TRY(flush_older_than(clock_.boot_ns()));
  for (const LiveInodePtr& live : live_.all()) {
    KVSYNCFS_ASSIGN(const auto others_are_done, lock_flush(live));
  }
  return alive();
}

void EngineImpl::list_again(const std::vector<LiveInodePtr>& group) {
  std::lock_guard lock(dirty_mutex_);
  for (const LiveInodePtr& live : group) dirty_list_.emplace_front(0, live);
  buffer_room_.notify_all();
}

/// A commit inside the store that only took too long, or holders that are away, fail nothing for
/// good.
Status EngineImpl::append_failed(const Error& error) {
  const bool later = error.code == Code::kTimeout || error.code == Code::kUnreachable;
  return later ? Status(error) : fail(error);
}

Status EngineImpl::flush_group(const std::vector<LiveInodePtr>& group) {
  KVSYNCFS_TRY(alive());
  Status may{};
  for (std::size_t i = 0; i < group.size() && may; ++i) may = settle_flush(group[i]);
  UnreferencedAppends::Hold unreferenced(unreferenced_);
  const std::optional<Incarnation> own = cluster_ ? std::optional(session()) : std::nullopt;
  if (may && own == Incarnation{}) may = no_session();
  if (!may) {
    list_again(group);
    return may;
  }
  std::vector<Snapshot> snapshots = freeze_dirty(group);
  const std::vector<Run> runs = collect_runs(group);
  std::vector<Bytes> bytes;
  bytes.reserve(runs.size());
  for (const Run& run : runs) bytes.push_back(run.bytes);
  auto placed = runs.empty() ? Result<std::vector<Placed>>(std::vector<Placed>{})
                             : store_->append(Stream::kUser, bytes);
  SentFlushPtr flush;
  FlushOutcome outcome{SentFlush::Fate::kRefused, {}};
  if (placed) {
    add_extents(snapshots, runs, *placed);
    flush = std::make_shared<SentFlush>(flush_transactions(group, snapshots),
                                        std::move(unreferenced), own);
  } else {
    outcome.status = append_failed(placed.error());
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::unique_lock lock(group[i]->mutex);
    group[i]->sent = flush;
    group[i]->sent_mtime = snapshots[i].mtime;
  }
  if (flush) outcome = drive_flush(flush, deadline());
  // Where the engine has failed the bytes stay in `flushing`: reads still see them.
  if (alive())
    for (const LiveInodePtr& live : group) take_outcome(live, outcome.fate);
  KVSYNCFS_TRY(std::move(outcome.status));
  counts_.flushes.fetch_add(1, std::memory_order_relaxed);
  follow_reservations();
  return {};
}

/// The bytes of an inode that was reclaimed meanwhile go with it; any other refusal would lose
/// them.
Status EngineImpl::bytes_committed(InodeId inode, const Status& status) {
  if (status) return {};
  const auto found = catalog_->inode(inode);
  if (!found && found.error().code == Code::kNotFound) return {};
  return fail(Error(status.error().code, fmt::format("written bytes of inode {} are refused: {}",
                                                     inode.value, status.error().detail)));
}

Status EngineImpl::log_dirty_bytes(LiveInode& live) {
  if (live.dirty.unlogged_bytes() == 0 && !live.mtime) return {};
  WriteInlineCommand command;
  command.inode = live.id;
  command.mtime = live.mtime;
  command.time = live.mtime.value_or(kNoTime);
  std::uint64_t size = 0;
  live.dirty.for_each(
      [&](std::uint64_t offset, Bytes piece) {
        size += piece.size();
        auto& pieces = command.pieces;
        if (pieces.empty() || pieces.back().file_offset + pieces.back().bytes.size() != offset)
          pieces.push_back({offset, {}});
        pieces.back().bytes.append(as_string(piece));
      },
      true);
  KVSYNCFS_ASSIGN(const auto results, commit(Transaction{{std::move(command)}}));
  KVSYNCFS_TRY(bytes_committed(live.id, results[0].status));
  live.dirty.mark_logged();
  live.mtime.reset();
  counts_.inline_bytes.fetch_add(size, std::memory_order_relaxed);
  return {};
}

Status EngineImpl::commit_dirty_locked(const LiveInodePtr& live) {
  if (!cluster_) {  // the log of a cluster has no room for bytes
    std::unique_lock lock(live->mutex);
    if (live->dirty.unlogged_bytes() <= kInlineBytesMax) return log_dirty_bytes(*live);
  }
  return flush_group({live});
}

Status EngineImpl::commit_late_bytes(const LiveInodePtr& live,
                                     std::unique_lock<std::shared_mutex>& lock) {
  if (!cluster_) return log_dirty_bytes(*live);
  for (const Deadline until = deadline(); !live->clean();) {
    if (until.is_over()) return Error(Code::kTimeout, "a file that is written all the time");
    lock.unlock();
    Status flushed = flush_group({live});
    lock.lock();
    KVSYNCFS_TRY(std::move(flushed));
  }
  return {};
}

Status EngineImpl::commit_dirty(const LiveInodePtr& live) {
  KVSYNCFS_ASSIGN(const auto no_flush, lock_flush(live));
  return commit_dirty_locked(live);
}

Status EngineImpl::sync(InodeId inode) {
  KVSYNCFS_TRY(alive());
  if (options_.read_only) return {};
  counts_.syncs.fetch_add(1, std::memory_order_relaxed);
  if (LiveInodePtr live = live_.find(inode)) {
    KVSYNCFS_TRY(admit_change());
    KVSYNCFS_TRY(commit_dirty(live));
  }
  return sync_log();
}

Status EngineImpl::make_room_in_buffer(std::uint64_t bytes) {
  const std::uint64_t bound = std::max(options_.write_buffer_bytes, bytes);
  if (dirty_bytes_ + bytes <= bound) return {};
  const Deadline until = deadline();
  const auto no_room = [] { return Error(Code::kTimeout, "write buffer: no room in time"); };
  while (dirty_bytes_ + bytes > bound) {
    KVSYNCFS_TRY(alive());
    KVSYNCFS_TRY(may_flush());
    if (until.is_over()) return no_room();
    std::vector<LiveInodePtr> group = take_dirty(kAll);
    if (!group.empty()) {
      FlushLocks locks(group);
      if (!locks.take(until)) {
        list_again(group);
        return no_room();
      }
      KVSYNCFS_TRY(flush_group(group));
      continue;
    }
    std::unique_lock lock(dirty_mutex_);  // all of it is being flushed by others
    const bool room = until.wait(buffer_room_, lock, [&] {
      return dirty_bytes_ + bytes <= bound || !dirty_list_.empty() || failed_;
    });
    if (!room) return no_room();
  }
  return {};
}

}  // namespace kvsyncfs
