// The engine as a node of a cluster: joins, follows the others' changes, tells them what they need
// to know, and keeps house. ARCHITECTURE.md, "Replicate, then commit".
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_admin_impl.h"
#include "engine/format/peer_message.h"

namespace kvsyncfs {

namespace {

constexpr std::uint64_t kTickNs = 100'000'000;
constexpr std::uint64_t kCountsPeriodNs = 1'000'000'000;
constexpr std::uint64_t kWatchWaitNs = 100'000'000;
constexpr std::uint64_t kPauseNs = 100'000'000;  // after a failure of etcd
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::size_t kOrphansPerCommand = 1000;
/// In one transaction: applying it holds up every other change on all nodes.
constexpr std::size_t kReclaimTogether = 64;
constexpr std::size_t kServerTasks = 2;

bool ends_log(const Error& error) {
  return error.code == Code::kCorrupt || error.code == Code::kStale ||
         error.code == Code::kShutdown;
}

/// The file whose bytes or size a command changes; 0: none.
InodeId changed_file(const Command& command) {
  if (const auto* c = std::get_if<WriteExtentsCommand>(&command)) return c->inode;
  if (const auto* c = std::get_if<AppendExtentsCommand>(&command)) return c->inode;
  if (const auto* c = std::get_if<AllocateCommand>(&command)) return c->inode;
  if (const auto* c = std::get_if<CloneRangeCommand>(&command)) return c->target;
  if (const auto* c = std::get_if<SetAttrCommand>(&command)) return c->size ? c->inode : InodeId{};
  return {};
}

}  // namespace

Status EngineImpl::open_cluster() {
  ClusterSeams& seams = *options_.cluster;
  EtcdLogOptions log;
  log.volume = seams.volume;
  log.node = seams.node_name;
  log.incarnation = seams.incarnation.value;
  log.lease_ttl_s = seams.lease_ttl_s;
  log.timeout_ns = options_.timeout_ns;
  log.capacity_bytes = seams.log_size_bytes;
  log.known = marked_batch();
  log.sent_away_by = eviction_key(seams.volume, seams.node_name);
  log.generation = seams.generation;
  log.barred_by = removal_key(seams.volume, seams.node, seams.node_name);
  KVSYNCFS_ASSIGN(auto opened, EtcdLog::open(seams.etcd, clock_, log));
  EtcdLog& etcd_log = *opened;
  log_ = std::move(opened);
  cluster_ =
      std::make_unique<ClusterParts>(seams, etcd_log, *catalog_, *store_, clock_,
                                     superblock_.volume_tag(), options_.timeout_ns, options_.warn);
  misses_ = &cluster_->segments.misses();
  catalog_->set_inode_observer([this](InodeId inode) { cluster_->kept_attributes.changed(inode); });
  start_lease_task();
  return {};
}

Status EngineImpl::start_transport() {
  cluster_->segments.server().serve_others(
      [this](const Incoming& request) { return answer_peer(request); });
  cluster_->session.tell_history([this] { cluster_->catalog_is_wrong = true; });
  cluster_->session.acknowledge_after(
      [this](auto then) { cluster_->kept_attributes.when_told(std::move(then)); });
  TransportHandlers handlers;
  handlers.on_request = [this, gate = cluster_->gate](Incoming request, Responder responder) {
    gate->enter([&] { take_request(std::move(request), std::move(responder)); });
  };
  handlers.on_peer = [this, gate = cluster_->gate](const PeerEvent& event) {
    gate->enter([&] { cluster_->segments.note_peer(event); });
  };
  handlers.on_refused = [warn = options_.warn](const std::string& address, const Error& why) {
    warn(fmt::format("a connection from {} is refused: {}", address, describe(why)));
  };
  return cluster_->seams.transport.start(std::move(handlers));
}

/// The log is replayed up to here. From the Join on other nodes wait for this one.
Status EngineImpl::join_cluster() {
  KVSYNCFS_TRY(refresh_members());
  start_tasks();
  KVSYNCFS_TRY(reach_members());
  KVSYNCFS_TRY(cluster_->session.join());
  cluster_->served = cluster_->session.incarnation();
  cluster_->seams.tasks.start("members", [this] { return look_at_members(); });
  return {};
}

void EngineImpl::take_request(Incoming request, Responder responder) {
  if (request.kind != static_cast<std::uint16_t>(PeerRequest::kAcknowledge))
    return cluster_->segments.server().take(std::move(request), std::move(responder));
  const auto message = decode_acknowledge(request.head);
  if (!message) return responder.reply(message.error());
  if (message->to > cluster_->session.incarnation())
    return responder.reply(Error(Code::kStale, "it is for a later life of this node"));
  if (const Status judged = judge_catalog(request.peer, *message); !judged)
    return responder.reply(judged.error());
  cluster_->session.note(request.peer, message->incarnation, message->position);
  responder.reply(Answer{});
}

/// Before all others: it takes as long as it takes until the node can join.
void EngineImpl::start_lease_task() {
  cluster_->seams.tasks.start("lease", [this] {
    const std::uint64_t due_ns = cluster_->log.run_keep_alive();
    return due_ns == kNever ? clock_.boot_ns() + kPauseNs : due_ns;  // the watch tells why
  });
}

void EngineImpl::start_tasks() {
  TaskRunner& tasks = cluster_->seams.tasks;
  tasks.start("watch", [this] {
    const Status status = cluster_->log.run_watch(kWatchWaitNs);
    cluster_->session.acknowledge();
    if (status) return clock_.boot_ns();
    const bool is_over = note_log_error(status.error());
    return is_over ? kNever : clock_.boot_ns() + kPauseNs;
  });
  for (std::size_t i = 0; i < kServerTasks; ++i)
    tasks.start("server", [this] {
      cluster_->segments.server().run();
      return clock_.boot_ns();
    });
  start_lock_tasks();
  tasks.start("upkeep", [this] { return maintain_cluster(); });
  // Not a step of the upkeep, whose own changes may wait for who is dead.
  tasks.start("sessions", [this] { return end_dead_sessions(); });
  tasks.start("heal", [this] { return heal_step(); });
  tasks.start("scrub", [this] { return admin_->scrub_by_itself(); });
}

/// Returns whether nothing more comes from the log.
bool EngineImpl::note_log_error(const Error& error) {
  if (error.code == Code::kFenced) {
    if (cluster_->log.lease_is_valid()) return false;  // it has joined again meanwhile
    const bool is_new = !cluster_->session.is_out();
    note_session_end();
    if (is_new) options_.warn(describe(error) + "; it is to join again");
    return false;
  }
  if (!ends_log(error)) return false;
  if (!closed_) static_cast<void>(fail(error));
  cluster_->session.ended();
  return true;
}

std::uint64_t EngineImpl::end_dead_sessions() {
  if (!closed_ && !failed_ && !cluster_->session.is_out())
    cluster_->session.end_the_dead(
        [this](NodeId node) { return cluster_->segments.is_down(node) || is_removed(node); },
        [this](NodeId node) { return name_of(node); });
  return clock_.boot_ns() + kTickNs;
}

std::uint64_t EngineImpl::maintain_cluster() {
  if (closed_ || failed_ || cluster_->session.is_out()) return clock_.boot_ns() + kTickNs;
  cluster_->session.acknowledge();
  const std::uint64_t now_ns = clock_.boot_ns();
  if (now_ns >= cluster_->counts_due_ns) {
    cluster_->counts_due_ns = now_ns + kCountsPeriodNs;
    cluster_->segments.look_at_room();
    if (const Status status = count_held_bytes(); !status)
      options_.warn("segments of this node: " + describe(status.error()));
    if (const Status status = release_expired_holds(); !status && !failed_)
      options_.warn("holds: " + describe(status.error()));
  }
  cluster_->snapshots.drop_idle();
  for (const Status& status :
       {follow_segments(), seal_let_go(), serving_ ? settle_orphans() : Status{},
        announce_durable(), trim_cluster_log()})
    if (!status && !failed_) options_.warn("upkeep: " + describe(status.error()));
  return clock_.boot_ns() + kTickNs;
}

void EngineImpl::note_applied(const Transaction& transaction,
                              const std::vector<CommandResult>& results) {
  const bool is_own = transaction.origin && transaction.origin->node == cluster_->seams.node;
  const std::uint64_t request = is_own ? transaction.origin->request : 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CommandResult& result = results[i];
    note_lock(transaction.commands[i], result, request);
    if (!result.status) continue;
    note_changed(transaction.commands[i], is_own);
    const auto* renamed = std::get_if<RenameCommand>(&transaction.commands[i]);
    if (result.orphaned) note_orphan(renamed ? result.replaced : result.inode, is_own);
    if (renamed && !is_own) note_moved(*renamed, result);
  }
  if (is_own) cluster_->lock_waits.passed(request);
}

/// A working folder and an open fifo, socket or device are no handles: the kernel does not say that
/// they are in use, only when they are no longer, and that soon, where it took the last name
/// itself. A file without a handle can have bytes, and other names that the kernel takes for more
/// than there are: that one does not wait for the kernel.
void EngineImpl::note_orphan(InodeId inode, bool is_own) {
  const auto attributes = catalog_->inode(inode);
  const bool in_kernel = is_own && attributes && !is_regular(*attributes);
  cluster_->handles.orphaned(inode, in_kernel);
  // It may have said so before the command was applied, whose caller then was told of a time-out.
  if (in_kernel && !live_.retained(inode)) cluster_->handles.left_kernel(inode);
}

void EngineImpl::note_changed(const Command& command, bool is_own) {
  if (std::holds_alternative<EndCommand>(command)) cluster_->sessions_ended = true;
  // Where an append comes to lie is known only now, also to the node that sent it; and who sent a
  // cut may have given up waiting.
  const InodeId file = changed_file(command);
  if (file.value != 0 && (!is_own || !std::holds_alternative<WriteExtentsCommand>(command)))
    if (LiveInodePtr live = live_.find(file)) {
      live->changed_elsewhere = true;
      if (!is_own && live->has_bytes()) live->overtaken = true;
    }
  if (file.value != 0 && (!is_own || std::holds_alternative<AppendExtentsCommand>(command)))
    cluster_->handles.forget_pages(file);
  if (const auto* moved = std::get_if<SetHoldersCommand>(&command)) return note_holders(*moved);
  const auto* seal = std::get_if<SealSegmentCommand>(&command);
  // A copy that is still on its way goes on, and an owner seals its file itself.
  if (seal != nullptr && (is_own || !is_holder(seal->segment))) seal = nullptr;
  const auto* gone = std::get_if<DeleteSegmentCommand>(&command);
  const auto* hold = std::get_if<HoldSegmentsCommand>(&command);
  if (hold != nullptr && is_own) cluster_->snapshots.hold_applied(hold->name);
  std::lock_guard lock(cluster_->mutex);
  if (seal != nullptr) cluster_->sealed.emplace_back(seal->segment, seal->length);
  if (gone != nullptr) cluster_->deleted.push_back(gone->segment);
}

/// This node's file of it: it may have become a holder again since the file was put down as one to
/// remove.
bool EngineImpl::is_needless(SegmentId segment) const {
  const auto record = catalog_->segment(segment);
  return record ? !is_holder(segment) : record.error().code == Code::kNotFound;
}

bool EngineImpl::is_holder(SegmentId segment) const {
  const auto record = catalog_->segment(segment);
  return record && std::find(record->holders.begin(), record->holders.end(),
                             cluster_->seams.node) != record->holders.end();
}

void EngineImpl::note_holders(const SetHoldersCommand& moved) {
  const auto record = catalog_->segment(moved.segment);
  if (!record) return;
  const bool stays = is_holder(moved.segment);
  std::lock_guard lock(cluster_->mutex);
  if (!stays)
    cluster_->deleted.push_back(moved.segment);
  else if (record->state == SegmentState::kSealed)
    cluster_->sealed.emplace_back(moved.segment, record->length);
}

/// This node's copies follow what the owners of the segments did.
Status EngineImpl::follow_segments() {
  std::deque<std::pair<SegmentId, std::uint64_t>> sealed;
  std::deque<SegmentId> deleted;
  {
    std::lock_guard lock(cluster_->mutex);
    sealed.swap(cluster_->sealed);
    deleted.swap(cluster_->deleted);
  }
  Status first;  // one that fails costs the others nothing
  const auto note = [&first](Status status) {
    if (first) first = std::move(status);
  };
  for (const auto& [segment, length] : sealed) note(store_->seal_replica(segment, length));
  for (const SegmentId segment : deleted)
    if (is_needless(segment)) note(store_->remove(segment));
  return first;
}

Status EngineImpl::settle_orphans() {
  std::vector<InodeId> nobodys;
  const HoldOrphansCommand news = cluster_->handles.take_news(kOrphansPerCommand);
  if (!news.held.empty() || !news.released.empty()) {
    auto said = commit_one(news);
    if (!said) {
      cluster_->handles.give_back(news);
      cluster_->sessions_ended = true;  // it may have happened: then nobody was told what it freed
      return said.error();
    }
    nobodys = std::move(said->reclaimable);
  }
  if (nobodys.empty() && cluster_->sessions_ended.exchange(false)) {
    KVSYNCFS_ASSIGN(nobodys, catalog_->reclaimable_orphans(kOrphansPerCommand));
    if (nobodys.size() == kOrphansPerCommand) cluster_->sessions_ended = true;
  }
  for (std::span<const InodeId> left(nobodys); !left.empty();) {
    const auto group = left.first(std::min(left.size(), kReclaimTogether));
    left = left.subspan(group.size());
    const Status freed = reclaim(group);
    const bool all_gone = std::none_of(group.begin(), group.end(), [this](InodeId inode) {
      return catalog_->inode(inode).has_value();
    });
    if (freed && all_gone) continue;
    cluster_->sessions_ended = true;  // look for them again
    KVSYNCFS_TRY(freed);
  }
  return {};
}

Status EngineImpl::may_answer() { return cluster_ ? cluster_->session.may_answer() : Status{}; }

/// The log decides where the bytes come to lie, so they go there before the write returns.
Status EngineImpl::append_now(InodeId inode, Bytes bytes, std::optional<Incarnation> begun,
                              std::uint64_t handle) {
  const std::uint64_t space = round_up(bytes.size(), kPageSize);
  KVSYNCFS_TRY(reserve_space(space, bytes.size(), {inode, 0, bytes.size(), true}));
  const LiveUse live(live_, inode);
  const auto no_flush = lock_flush(live.pointer());
  Status status = no_flush ? commit_dirty_locked(live.pointer()) : Status(no_flush.error());
  if (status)
    status = [&]() -> Status {
      const UnreferencedAppends::Hold unreferenced(unreferenced_);
      if (begun && session() != *begun)
        return Error(Code::kTimeout, "this node's session ended meanwhile");
      KVSYNCFS_TRY(cluster_->lost_handles.check(inode, handle));
      auto placed = store_->append(Stream::kUser, {&bytes, 1});
      if (!placed) return append_failed(placed.error());
      AppendExtentsCommand command;
      command.inode = inode;
      command.time = clock_.now();
      for (const Placed& p : *placed)
        command.pieces.push_back({p.segment, p.segment_offset, p.length});
      auto appended = commit_one(std::move(command));
      return appended ? Status{} : Status(appended.error());
    }();
  store_->unreserve(space);
  if (status) counts_.written_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  return status;
}

/// As people count: after replication, over the nodes that are up.
Result<SpaceInfo> EngineImpl::space_of_cluster() {
  std::uint64_t size = 0, free = 0;
  for (const Member& member : cluster_->membership.map()->members) {
    size += usable_bytes(member.capacity_bytes);
    free += std::min(member.free_bytes, usable_bytes(member.capacity_bytes));
  }
  const std::uint64_t replicas = std::max<std::uint64_t>(cluster_->seams.replicas, 1);
  constexpr std::uint64_t kBytesPerInode = 512;  // as on a lone node
  SpaceInfo info;
  info.total_bytes = size / replicas;
  // What is used is known exactly, what is free on each node as it told last.
  const std::uint64_t used =
      catalog_->totals().live_bytes + cluster_->kept_dead_bytes + dirty_bytes_;
  info.free_bytes = info.total_bytes - std::min(used, info.total_bytes);
  info.available_bytes = std::min(info.free_bytes, free / replicas);
  info.free_inodes = info.free_bytes / kBytesPerInode;
  info.total_inodes = catalog_->totals().inodes + info.free_inodes;
  return info;
}

void EngineImpl::leave_cluster() {
  const Position last = log_->last();
  if (!failed_) static_cast<void>(announce_durable());  // else it keeps more of the log, no harm
  if (!failed_)
    if (const Status left = cluster_->session.leave(); !left)
      options_.warn("leaving the cluster: " + describe(left.error()));
  cluster_->seams.tasks.stop();
  if (const Status kept = keep_catalog(last); !kept)
    options_.warn("the catalog so far: " + describe(kept.error()));
  end_lock_waits();
}

}  // namespace kvsyncfs
