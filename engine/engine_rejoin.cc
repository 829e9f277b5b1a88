// A node whose session has ended begins another one, under the same mount. ARCHITECTURE.md, "A node
// that lost its session joins again".
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kPauseNs = 300'000'000, kSecond = 1'000'000'000;
}  // namespace

// What handles are told.

std::uint64_t EngineImpl::next_handle() {
  return cluster_ ? cluster_->lost_handles.next_handle() : 0;
}

/// Who has a lock reads nothing that others may have changed under theirs.
Status EngineImpl::check_handle(InodeId inode, std::uint64_t handle) {
  if (!cluster_) return {};
  if (!cluster_->session.is_proved()) {
    KVSYNCFS_ASSIGN(const auto locked, catalog_->locked_by(own_session()));
    const auto is_it = [inode](const auto& table) { return table.first == inode; };
    if (std::any_of(locked.begin(), locked.end(), is_it)) KVSYNCFS_TRY(may_answer());
  }
  return cluster_->lost_handles.check(inode, handle);
}

Status EngineImpl::check_change(InodeId inode, std::uint64_t handle) {
  if (!cluster_) return {};
  KVSYNCFS_TRY(may_answer());
  return cluster_->lost_handles.check(inode, handle);
}

Status EngineImpl::check_bytes(InodeId inode, std::uint64_t handle) {
  return cluster_ ? cluster_->lost_handles.check_bytes(inode, handle) : Status{};
}

void EngineImpl::set_forget_pages(std::function<void(InodeId)> forget) {
  std::lock_guard lock(forget_mutex_);
  forget_pages_ = std::move(forget);
}

// The end of a session.

void EngineImpl::note_session_end() {
  if (!cluster_->session.is_out()) counts_.leases_lost.fetch_add(1, std::memory_order_relaxed);
  cluster_->session.ended();
  cluster_->kept_attributes.all_changed();
}

/// Called before the entry is applied: afterwards nobody knows what the session had.
void EngineImpl::note_own_end(const Transaction& transaction) {
  for (const Command& command : transaction.commands) {
    const auto* end = std::get_if<EndCommand>(&command);
    if (end == nullptr || end->node != cluster_->seams.node) continue;
    if (closed_ || end->incarnation != session()) continue;
    cluster_->served = Incarnation{};
    const bool is_news = !cluster_->session.is_out();
    note_session_end();
    if (const auto tables = catalog_->locked_by(own_session()))
      for (const auto& [inode, kind] : *tables) note_lost_lock(inode, kind);
    if (is_news) cluster_->log.give_way("its end is in the log");
  }
}

/// One that only waits has nothing to lose.
void EngineImpl::note_lost_lock(InodeId inode, LockKind kind) {
  const auto table = catalog_->locks(inode, kind);
  const SessionId own = own_session();
  if (table && std::none_of(table->held.begin(), table->held.end(),
                            [own](const FileLock& held) { return held.owner.session == own; }))
    return;
  cluster_->lost_handles.lock_lost(inode);
  cluster_->handles.forget_pages(inode);
  std::lock_guard lock(cluster_->mutex);
  cluster_->unlocked.insert(inode);
}

// The next session.

std::uint64_t EngineImpl::rejoin_step() {
  const std::uint64_t again_ns = clock_.boot_ns() + kPauseNs;
  if (!meet_members()) return again_ns;
  const auto map = cluster_->membership.map();
  const Member* self = map->find(cluster_->seams.node);
  if (self != nullptr && self->incarnation > cluster_->session.incarnation()) {
    static_cast<void>(fail(Error(Code::kFenced, "this node has begun another life elsewhere")));
    return again_ns;
  }
  if (!missing_members().empty() || is_missed()) return again_ns;
  const std::int64_t former_lease = cluster_->log.lease();
  const Status joined = rejoin();
  if (joined) {
    options_.warn("this node has joined again");
    cluster_->not_joined.clear();
    forget_lost_pages();
    return clock_.boot_ns();
  }
  if (joined.error().code == Code::kCorrupt || joined.error().code == Code::kStale)
    static_cast<void>(fail(joined.error()));
  const std::string why = describe(joined.error());
  if (why != cluster_->not_joined) options_.warn("joining again: " + why);
  cluster_->not_joined = why;
  cluster_->log.give_way("it could not join again");
  // A new one proved nothing to anybody.
  if (cluster_->log.lease() != former_lease) static_cast<void>(cluster_->log.free_lease());
  return joined.error().code == Code::kNotPermitted ? again_ns + kSecond : again_ns;
}

/// Not before the node has joined: the kernel may write back what a mapping changed.
void EngineImpl::forget_lost_pages() {
  std::function<void(InodeId)> forget;
  {
    std::lock_guard lock(forget_mutex_);
    forget = forget_pages_;
  }
  const auto files = std::exchange(cluster_->forgotten, {});
  for (const InodeId inode : files)
    if (forget) forget(inode);
}

/// All that must be over before anything of the next session can be seen.
Status EngineImpl::rejoin() {
  ClusterSeams& seams = cluster_->seams;
  KVSYNCFS_ASSIGN(
      const std::uint64_t incarnation,
      next_incarnation(seams.etcd, clock_, seams.volume, seams.node_name, seams.generation));
  KVSYNCFS_TRY(cluster_->log.rejoin(incarnation, [this] { return keep_log(); }));
  cluster_->handles.session_ended();
  KVSYNCFS_TRY(cluster_->session.rejoin({incarnation}));
  cluster_->lock_waits.session_ended();
  KVSYNCFS_TRY(note_lost_files());
  KVSYNCFS_TRY(learn_fates());
  KVSYNCFS_TRY(let_go_segments());
  KVSYNCFS_TRY(drop_lost_bytes());
  cluster_->served = {incarnation};
  cluster_->session.reopen();
  return {};
}

/// As a node does that is on its way to be a member, until the upkeep lets go.
Status EngineImpl::keep_log() {
  std::lock_guard lock(cluster_->announce_mutex);
  KVSYNCFS_TRY(cluster_->durable.keep(cluster_->seams.node_name, cluster_->log.lease(),
                                      log_->last(), clock_.boot_ns() + options_.timeout_ns / 3));
  cluster_->keeps_log = true;
  return {};
}

/// The present session holds no orphan that lost its name before it began.
Status EngineImpl::note_lost_files() {
  const SessionId own = own_session();
  for (const InodeId inode : cluster_->handles.all_open()) {
    const auto record = catalog_->inode(inode);
    if (!record && record.error().code != Code::kNotFound) return record.error();
    if (record && record->link_count > 0) continue;
    if (record) {
      KVSYNCFS_ASSIGN(const auto orphan, catalog_->orphan(inode));
      const auto is_own = [own](const OrphanRecord::Holder& holder) {
        return holder.session == own;
      };
      if (orphan && std::any_of(orphan->holders.begin(), orphan->holders.end(), is_own)) continue;
    }
    cluster_->lost_handles.file_lost(inode);
  }
  return {};
}

/// Who has written a file since bytes of it began to wait here, or had a lock on it, must not find
/// them over its own. What a try that failed dropped stays dropped.
Status EngineImpl::drop_lost_bytes() {
  std::unordered_set<InodeId> unlocked;
  {
    std::lock_guard lock(cluster_->mutex);
    unlocked = cluster_->unlocked;
  }
  cluster_->forgotten.insert(unlocked.begin(), unlocked.end());
  for (const LiveInodePtr& live : live_.all()) {
    const bool is_unlocked = unlocked.contains(live->id);
    if (is_unlocked || live->overtaken) KVSYNCFS_TRY(drop_lost_bytes(*live, is_unlocked));
  }
  std::lock_guard lock(cluster_->mutex);
  cluster_->unlocked.clear();
  return {};
}

Status EngineImpl::drop_lost_bytes(LiveInode& live, bool always) {
  KVSYNCFS_ASSIGN(const auto no_flush, lock_flush_mutex(live));
  std::unique_lock lock(live.mutex);
  if (live.is_empty() || !(always || live.overtaken)) return {};
  const std::uint64_t pages = live.dirty.page_count() + live.flushing.page_count();
  live.dirty.clear();
  live.flushing.clear();
  live.mtime.reset();
  live.changed_elsewhere = true;
  settle(live);
  cluster_->forgotten.insert(live.id);
  cluster_->handles.forget_pages(live.id);
  if (cluster_->handles.is_open(live.id)) cluster_->lost_handles.bytes_lost(live.id);
  options_.warn(
      fmt::format("inode {}: up to {} bytes that were not synced are lost, since others "
                  "had the file while this node had no session",
                  live.id.value, pages * kPageSize));
  return {};
}

/// Each of them will be sealed behind what is referred to, so nothing in it may be referred to
/// later. Whoever has appended to one of them began before it was let go, is waited for, and fails:
/// before the next session serves nothing is committed, and none of its segments is opened. The
/// wait before keeps the store from being locked by an append that takes its time.
Status EngineImpl::let_go_segments() {
  const auto wait = [this]() -> Status {
    if (unreferenced_.wait_for_earlier(deadline())) return {};
    return Error(Code::kTimeout, "an append does not end");
  };
  KVSYNCFS_TRY(wait());
  {
    const auto open = store_->let_go();
    std::lock_guard lock(cluster_->mutex);
    cluster_->let_go.insert(cluster_->let_go.end(), open.begin(), open.end());
  }
  return wait();
}

/// Each ends where the last byte that is referred to has its batch's end. Who heals may have done
/// so meanwhile, at the same place.
Status EngineImpl::seal_let_go() {
  std::vector<SegmentId> open;
  {
    std::lock_guard lock(cluster_->mutex);
    open.swap(cluster_->let_go);
  }
  Status first;
  for (const SegmentId segment : open) {
    const Status sealed = seal_former(segment);
    if (sealed) continue;
    if (first) first = sealed;
    std::lock_guard lock(cluster_->mutex);
    cluster_->let_go.push_back(segment);
  }
  return first;
}

Status EngineImpl::seal_former(SegmentId segment) {
  auto record = catalog_->segment(segment);
  if (!record) return record.error().code == Code::kNotFound ? Status{} : Status(record.error());
  if (!is_held(*record)) return {};  // who took it away from this node said so in the log
  if (record->state == SegmentState::kOpen) {
    KVSYNCFS_ASSIGN(const std::uint64_t end, referenced_end(segment));
    KVSYNCFS_ASSIGN(const std::uint64_t length, store_->batch_end(segment, end));
    KVSYNCFS_TRY(commit_one(SealSegmentCommand{segment, length}));
    record = catalog_->segment(segment);
  }
  return record ? store_->seal_replica(segment, record->length) : Status(record.error());
}

}  // namespace kvsyncfs
