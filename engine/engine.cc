// Opens, wires and closes the rooms; commits transactions. The only place that knows which maker of
// the log and of the miss source is used.
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "engine/base/size_text.h"
#include "engine/catalog_folder.h"
#include "engine/engine_admin_impl.h"
#include "engine/engine_impl.h"
#include "engine/env/caller.h"

namespace kvsyncfs {

namespace {

/// Not the end of the log or of the store: later calls may do better.
bool passes(const Error& error) {
  return error.code == Code::kNoSpace || error.code == Code::kTimeout ||
         error.code == Code::kUnreachable;
}

}  // namespace

StoreOptions store_options(const std::string& store, const Superblock& superblock) {
  StoreOptions options;
  options.directory = store + "/segments";
  options.volume_tag = superblock.volume_tag();
  options.size_bytes = superblock.size_bytes;
  options.segment_size_bytes = superblock.segment_size_bytes;
  return options;
}

LocalLogOptions log_options(const std::string& store, const Superblock& superblock) {
  LocalLogOptions options;
  options.directory = store + "/log";
  options.volume_tag = superblock.volume_tag();
  options.file_size_bytes = superblock.log_file_size_bytes;
  options.file_count_max = superblock.log_file_count_max;
  return options;
}

Status check_alone(const std::string& store, const Superblock& superblock) {
  if ((superblock.incompatible & kIncompatibleCluster) == 0) return {};
  return Error(Code::kUnsupported,
               store + ": a node of a cluster, of no use without its volume's log in etcd");
}

CatalogOptions catalog_options(const std::string& store, std::uint64_t memory_bytes) {
  // Whoever allows little memory means all of it. Less than this costs more than it saves.
  constexpr std::uint64_t kShareMin = 8u << 20;
  CatalogOptions options;
  options.directory = store + "/catalog";
  options.memtable_bytes = std::clamp(memory_bytes / 4, kShareMin, options.memtable_bytes);
  options.block_cache_bytes = std::clamp(memory_bytes / 8, kShareMin, options.block_cache_bytes);
  return options;
}

namespace {

constexpr std::uint64_t kExtentShare = 16, kBlockShare = 8, kIndexShare = 100;  // one in so many

/// Of the memory for what was read, the part for where files' bytes lie.
std::uint64_t extent_cache_bytes(const EngineOptions& options) {
  constexpr std::uint64_t kBytesMin = 256u << 10;
  return std::max(options.cache_size_bytes / kExtentShare, kBytesMin);
}

/// The part for pages: what extents, the catalog's blocks and the index of the pages leave.
std::uint64_t arena_bytes(const EngineOptions& options) {
  const std::uint64_t all = options.cache_size_bytes;
  const std::uint64_t blocks =
      catalog_options({}, all + options.write_buffer_bytes).block_cache_bytes;
  return all - all / kExtentShare - all / kIndexShare - std::min(blocks, all / kBlockShare);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(Disk& disk, Clock& clock, Random& random,
                                             EngineOptions options) {
  KVSYNCFS_ASSIGN(Superblock superblock, Engine::superblock(disk, options.store));
  const bool is_look = options.read_only && options.for_check && options.check_node.value != 0;
  if (options.cluster == nullptr && !is_look) KVSYNCFS_TRY(check_alone(options.store, superblock));
  if ((superblock.read_only_compatible & ~kKnownReadOnlyCompatible) != 0 && !options.read_only)
    return Error(Code::kNewerFormat,
                 options.store + ": a feature of a newer version allows reading only");
  std::unique_ptr<EngineImpl> engine;
  const std::uint64_t cache_size_bytes = options.cache_size_bytes;
  try {
    engine = std::make_unique<EngineImpl>(disk, clock, random, std::move(options),
                                          std::move(superblock));
  } catch (const std::bad_alloc&) {
    return Error(Code::kNoMemory,
                 "no room for a cache_size of " + size_for_people(cache_size_bytes));
  }
  KVSYNCFS_TRY(engine->start());
  return std::unique_ptr<Engine>(std::move(engine));
}

EngineImpl::EngineImpl(Disk& disk, Clock& clock, Random& random, EngineOptions options,
                       Superblock superblock)
    : disk_(disk),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      superblock_(std::move(superblock)),
      ballast_(disk, options_.store, ballast_bytes(superblock_)),
      pages_(arena_bytes(options_)),
      extents_(extent_cache_bytes(options_)),
      live_(frames_),
      size_now_(superblock_.size_bytes),
      admin_(std::make_unique<Admin>(*this)) {}

EngineImpl::~EngineImpl() {
  if (!cluster_) return;
  cluster_->detach();
  options_.cluster->tasks.stop();
}

Status EngineImpl::start() {
  KVSYNCFS_TRY(start_rooms());
  return recover();
}

Status EngineImpl::start_without_taking() {
  KVSYNCFS_TRY(start_rooms());
  return replay_log();
}

/// The store is the first: on a full disk its spare files give the others the room to open.
Status EngineImpl::start_rooms() {
  KVSYNCFS_TRY(start_store());
  KVSYNCFS_TRY(open_ballast());
  CatalogOptions catalog = catalog_options(options_.store, memory_bytes());
  KVSYNCFS_ASSIGN(catalog.directory, catalog_folder(disk_, options_.store));
  catalog.keeps_history = options_.cluster != nullptr;
  catalog.read_only = options_.read_only;
  catalog.for_check = options_.for_check;
  KVSYNCFS_ASSIGN(catalog_, Catalog::open(ballast_.guarded(), catalog));
  catalog_->set_extent_observer(
      [this](const ExtentChange& c) { extents_.forget(c.inode, c.offset, c.length); });
  if (options_.check_node.value != 0) return {};
  if (options_.cluster != nullptr) return open_cluster();
  LocalLogOptions log = log_options(options_.store, superblock_);
  log.read_only = options_.read_only;
  log.warn = options_.warn;
  log.before_write = [this] { return store_->sync(); };
  log.clock = &clock_;
  log.timeout_ns = options_.timeout_ns;
  KVSYNCFS_ASSIGN(log_, open_local_log(ballast_.guarded(), log));
  return {};
}

Status EngineImpl::start_store() {
  StoreOptions store = store_options(options_.store, superblock_);
  store.read_only = options_.read_only;
  store.keep_free_bytes = [this] { return keep_free_bytes(); };
  store.open_segment = [this]() -> Result<SegmentId> {
    Command command = OpenSegmentCommand{};
    if (cluster_) {
      KVSYNCFS_ASSIGN(command, cluster_->segments.place());
    }
    KVSYNCFS_ASSIGN(CommandResult result, commit_one(std::move(command)));
    return result.segment;
  };
  store.seal_segment = [this](SegmentId id, std::uint64_t length) -> Status {
    KVSYNCFS_TRY(commit_one(SealSegmentCommand{id, length}));
    return {};
  };
  if (options_.cluster != nullptr)
    store.ship = [this](SegmentId id, std::uint64_t page, std::span<const Bytes> pieces) {
      return cluster_->segments.ship(id, page, pieces);
    };
  KVSYNCFS_ASSIGN(store_, SegmentStore::open(disk_, store));
  local_misses_ = std::make_unique<LocalMissSource>(*store_);
  misses_ = local_misses_.get();
  return {};
}

/// An open segment's length: the log was written after these bytes were durable, so that a bad page
/// below it is damage and not a torn write. What a saved catalog refers to counts as well.
Result<std::uint64_t> EngineImpl::referenced_end(SegmentId segment) {
  constexpr std::size_t kChunk = 4096;
  std::uint64_t held = 0;
  for (const auto& [name, hold] : catalog_->holds())
    for (const HoldRecord::End& end : hold.ends)
      if (end.segment == segment) held = std::max(held, end.bytes);
  for (std::uint64_t end = held;;) {
    KVSYNCFS_ASSIGN(const auto extents, catalog_->segment_extents(segment, end, kChunk));
    if (extents.empty()) return end;
    const std::uint64_t before = end;
    for (const auto& [inode, e] : extents) end = std::max(end, e.segment_offset + e.length);
    if (end == before)
      return Error(Code::kCorrupt,
                   fmt::format("catalog: segment {} has references of no length", segment.value));
  }
}

/// By this node.
bool EngineImpl::is_held(const SegmentRecord& record) const {
  const NodeId self = options_.cluster != nullptr ? options_.cluster->node : options_.check_node;
  const auto& holders = record.holders;
  return self.value == 0 || std::find(holders.begin(), holders.end(), self) != holders.end();
}

/// In a cluster only those that this node holds: files of others are left over from a copy.
Result<std::vector<KnownSegment>> EngineImpl::known_segments() {
  std::vector<KnownSegment> known;
  KVSYNCFS_ASSIGN(const auto segments, catalog_->segments());
  for (const auto& [id, record] : segments) {
    if (!is_held(record)) continue;
    known.push_back({id, record.state == SegmentState::kSealed, record.length});
    known.back().is_replica = cluster_ && record.owner != options_.cluster->node;
    if (known.back().sealed || known.back().is_replica) continue;
    KVSYNCFS_ASSIGN(known.back().length, referenced_end(id));
  }
  return known;
}

Status EngineImpl::replay_log() {
  const Position applied = catalog_->applied();
  const Status started =
      log_->start(applied, [this](Position p, std::string_view entry) { apply_entry(p, entry); });
  if (!started && cluster_ && started.error().code == Code::kStale)
    return log_is_gone(started.error());
  KVSYNCFS_TRY(started);
  if (failure_) return *failure_;
  replaying_ = false;
  checkpointed_ = applied;
  last_sync_ns_ = last_checkpoint_ns_ = clock_.boot_ns();
  return {};
}

Status EngineImpl::recover() {
  if (cluster_) KVSYNCFS_TRY(reach_log());
  if (options_.check_node.value != 0) return {};
  KVSYNCFS_TRY(replay_log());
  if (options_.read_only) return {};
  if (cluster_) KVSYNCFS_TRY(join_cluster());

  KVSYNCFS_ASSIGN(const auto known, known_segments());
  KVSYNCFS_TRY(store_->adopt(known));
  if (cluster_) cluster_->segments.server().take_copies();
  follow_reservations();
  // What was fsynced through the log and not yet in a segment is dirty again; give it its space and
  // place.
  for (const LiveInodePtr& live : live_.all()) {
    if (!catalog_->inode(live->id)) {
      live->dirty.clear();
      settle(*live);
      live_.drop_if_idle(live->id);
      continue;
    }
    // The open segments of the former life are sealed with what was left in them, so that in a full
    // store the room that these bytes had may need cleaning first.
    const std::uint64_t bytes = live->dirty.page_count() * kPageSize;
    Status room = clean_for(bytes);
    if (!room && room.error().code == Code::kNoSpace && ballast_.make_room(ballast_.mark()))
      room = clean_for(bytes);
    KVSYNCFS_TRY(room);
    live->reserved_bytes = bytes;
  }
  KVSYNCFS_TRY(flush_everything());
  if (!cluster_) {  // else a step of the cluster's upkeep asks who holds them
    KVSYNCFS_ASSIGN(auto orphans, catalog_->orphans());
    for (InodeId orphan : orphans) KVSYNCFS_TRY(reclaim(orphan));
  }
  serving_ = true;
  look_at_disk();
  return log_->sync(log_->last());
}

void EngineImpl::apply_entry(Position position, std::string_view entry) {
  auto decoded = decode_transaction(entry);
  if (!decoded) {
    (void)fail(Error(decoded.error().code,
                     fmt::format("log position {}: {}", position.value, decoded.error().detail)));
    return;
  }
  Result<std::vector<CommandResult>> results = std::vector<CommandResult>{};
  if (cluster_ && !replaying_) note_own_end(*decoded);
  if (!replaying_ || position > catalog_->applied() ||
      position == catalog_->applied()) {  // the last one may be applied in part
    std::unique_lock whole(whole_mutex_, std::defer_lock);
    if (cluster_) whole.lock();
    results = catalog_->apply(position, *decoded);
  }
  if (!results) (void)fail(results.error());
  if (replaying_) {
    replay(*decoded);
    return;
  }
  if (cluster_) {
    if (results) note_applied(*decoded, *results);
    cluster_->session.applied(position, *decoded, std::move(results));
    return;
  }
  std::lock_guard lock(results_mutex_);
  results_.insert_or_assign(position, std::move(results));
}

Result<std::vector<CommandResult>> EngineImpl::commit(Transaction transaction,
                                                      std::optional<Incarnation> session) {
  KVSYNCFS_TRY(alive());
  if (cluster_) {
    auto results = cluster_->session.commit(std::move(transaction), {session, {}, {}});
    return results ? std::move(results) : commit_failed(results.error());
  }
  auto position = log_->append(encode(transaction));
  if (!position) return commit_failed(position.error());
  std::lock_guard lock(results_mutex_);
  auto node = results_.extract(*position);
  assert(!node.empty() && "append returns after apply");
  return std::move(node.mapped());
}

Error EngineImpl::commit_failed(const Error& error) {
  const bool has_left = cluster_ && closed_ && error.code == Code::kShutdown;
  return passes(error) || has_left ? error : fail(error).error();
}

Result<CommandResult> EngineImpl::commit_one(Command command, std::optional<Incarnation> session) {
  if (!Caller::may_change()) return Error(Code::kTimeout, "its caller has gone");
  Transaction transaction;
  transaction.commands.push_back(std::move(command));
  KVSYNCFS_ASSIGN(auto results, commit(std::move(transaction), session));
  assert(results.size() == 1);
  if (!results[0].status) return results[0].status.error();
  return std::move(results[0]);
}

Status EngineImpl::admit_change() {
  KVSYNCFS_TRY(alive());
  if (options_.read_only) return Code::kReadOnly;
  if (closed_) return Code::kShutdown;
  if (cluster_) return may_answer();  // the log itself refuses what it has no room for
  const std::uint64_t held = log_->held_bytes(), limit = log_limit_bytes();
  if (held > limit / 2) wake();
  // The last quarter is for the flushes and moves that a checkpoint itself makes.
  if (held <= limit / 4 * 3) return {};
  Status made = make_room_in_log();
  const bool is_short = !made && made.error().code == Code::kNoSpace;
  return is_short && held <= log_->capacity_bytes() / 4 * 3 ? Status{} : made;
}

Result<std::optional<Incarnation>> EngineImpl::begin_change() {
  KVSYNCFS_TRY(admit_change());
  if (!cluster_) return std::optional<Incarnation>();
  const Incarnation now = session();
  if (now == Incarnation{}) return Error(Code::kTimeout, "this node's session has ended");
  return std::optional(now);
}

Status EngineImpl::sync_log() {
  Status synced = log_->sync(log_->last());
  return synced || passes(synced.error()) ? synced : fail(synced.error());
}

Status EngineImpl::fail(Error error) {
  counts_.errors.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(failure_mutex_);
  if (!failure_) {
    options_.warn(describe(error) + "; the store takes no more changes until it is mounted again");
    if (error.code == Code::kFenced) counts_.leases_lost.fetch_add(1, std::memory_order_relaxed);
    failure_ = error;
    failed_ = true;
  }
  return error;
}

Status EngineImpl::failure() const {
  std::lock_guard lock(failure_mutex_);
  return failure_ ? Status(*failure_) : Status{};
}

Status EngineImpl::alive() const {
  if (!failed_) return {};
  std::lock_guard lock(failure_mutex_);
  return Error(Code::kIo, failure_->detail);
}

Status EngineImpl::close() {
  if (closed_) return {};
  Status flushed{};
  if (!options_.read_only && !failed_) {
    flushed = commit_atimes(true);
    if (flushed) flushed = sync_all();
    if (flushed) flushed = drop_dead_segments();
    // What did not reach the catalog's files is in the log, and durable.
    if (flushed) flushed = checkpoint();
    if (!flushed && passes(flushed.error())) {
      options_.warn("last checkpoint: " + describe(flushed.error()));
      flushed = {};
    }
  }
  closed_ = true;
  if (cluster_) leave_cluster();
  return flushed ? alive() : flushed;
}

Status EngineImpl::sync_all() {
  if (options_.read_only) return {};
  KVSYNCFS_TRY(flush_everything());
  counts_.syncs.fetch_add(1, std::memory_order_relaxed);
  return sync_log();
}

}  // namespace kvsyncfs
