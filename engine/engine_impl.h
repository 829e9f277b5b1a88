// The engine's inside, shared by engine*.cc: one class over several files, each named for what it
// does (engine.cc opens and wires, engine_names.cc, engine_data.cc, engine_flush.cc, ...).
//
// Locks, outermost first: checkpoint_mutex_ or clean_mutex_ (never both) · LiveInode::flush_mutex
// (by inode id) · SentFlush::mutex · LiveInode::mutex · the log's append lock · leaf mutexes of
// this class, of the tier and of the store. No LiveInode lock is held while waiting for space or
// for a checkpoint.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "engine/catalog/catalog.h"
#include "engine/cluster_parts.h"
#include "engine/engine.h"
#include "engine/env/deadline.h"
#include "engine/live_inode.h"
#include "engine/local_misses.h"
#include "engine/log/local_log.h"
#include "engine/policy/readahead.h"
#include "engine/sent_flush.h"
#include "engine/store/ballast.h"
#include "engine/store/segment_store.h"
#include "engine/tier/extent_cache.h"
#include "engine/tier/miss_source.h"
#include "engine/tier/page_cache.h"
#include "engine/unreferenced_appends.h"

namespace kvsyncfs {

class KeyList;

/// Layout of a store's folder and the sizes derived from the superblock.
StoreOptions store_options(const std::string& store, const Superblock& superblock);
std::uint64_t ballast_bytes(const Superblock& superblock);
LocalLogOptions log_options(const std::string& store, const Superblock& superblock);
/// `memory_bytes`: what the engine's options allow together.
CatalogOptions catalog_options(const std::string& store, std::uint64_t memory_bytes);
/// The store is one that a lone node may open. Errors: kUnsupported.
Status check_alone(const std::string& store, const Superblock& superblock);

struct Acknowledge;
struct FetchedCatalog;

class EngineImpl final : public Engine {
 public:
  EngineImpl(Disk& disk, Clock& clock, Random& random, EngineOptions options,
             Superblock superblock);
  ~EngineImpl() override;

  Status start();                 ///< opens the rooms and recovers; once
  Status start_without_taking();  ///< for mend(): replays, and leaves it at that; once
  Result<CheckReport> mend(const CheckOptions& options);

  Status close() override;
  const Superblock& superblock() const override { return superblock_; }

  Result<Entry> lookup(InodeId parent, std::string_view name) override;
  Result<Entry> create(InodeId parent, std::string_view name, const NewNode& node) override;
  Result<Entry> link(InodeId inode, InodeId parent, std::string_view name) override;
  Status unlink(InodeId parent, std::string_view name) override;
  Status remove_directory(InodeId parent, std::string_view name) override;
  Status rename(InodeId old_parent, std::string_view old_name, InodeId new_parent,
                std::string_view new_name, RenameMode mode) override;
  Result<std::vector<ListEntry>> list(InodeId directory, std::uint64_t cookie,
                                      std::size_t count_max, bool with_attributes) override;
  std::uint64_t newest_cookie() const override;
  void retain(InodeId inode, std::uint64_t count) override { live_.retain(inode, count); }
  void release(InodeId inode, std::uint64_t count) override;
  Result<bool> open_handle(InodeId inode) override;
  void close_handle(InodeId inode) override;
  std::uint64_t next_handle() override;
  Status check_handle(InodeId inode, std::uint64_t handle) override;
  Status check_change(InodeId inode, std::uint64_t handle) override;
  Status check_bytes(InodeId inode, std::uint64_t handle) override;
  void set_forget_pages(std::function<void(InodeId)> forget) override;

  Result<Inode> attributes(InodeId inode) override;
  Result<Inode> attributes_of_open(InodeId inode) override;
  std::uint64_t keep_attributes(InodeId inode) override;
  void set_forget_attributes(std::function<bool(InodeId)> forget) override;
  Result<Inode> set_attributes(InodeId inode, const AttributeChange& change) override;
  void touch(InodeId inode) override;
  Result<std::string> xattr(InodeId inode, std::string_view name) override;
  Result<std::vector<std::string>> xattr_names(InodeId inode) override;
  Status set_xattr(InodeId inode, std::string_view name, std::string_view value, XattrMode mode,
                   bool clear_setgid) override;
  Status remove_xattr(InodeId inode, std::string_view name) override;

  Result<std::size_t> read(InodeId inode, std::uint64_t offset, MutableBytes out) override;
  Status write(InodeId inode, std::uint64_t offset, Bytes bytes, WriteOptions options) override;
  Result<bool> clear_privileges(InodeId inode, const GroupTest& is_member) override;
  Status sync(InodeId inode) override;
  Status flush(InodeId inode) override { return cluster_ ? sync(inode) : Status{}; }
  Status sync_all() override;
  Status allocate(InodeId inode, std::uint64_t offset, std::uint64_t length,
                  AllocateMode mode) override;
  Result<std::uint64_t> clone_range(InodeId source, std::uint64_t source_offset, InodeId target,
                                    std::uint64_t target_offset, std::uint64_t length) override;
  Result<std::uint64_t> seek(InodeId inode, std::uint64_t offset, SeekKind kind) override;
  std::uint64_t begin_lock(LockDone done) override;
  void lock(std::uint64_t request, const LockRange& range, LockType type, bool wait) override;
  void cancel_lock(std::uint64_t request) override;
  Status unlock(const LockRange& range) override;
  void drop_locks(InodeId inode, LockKind kind, std::uint64_t owner) override;
  Result<std::optional<HeldLock>> lock_in_the_way(const LockRange& range, LockType type) override;
  Result<SpaceInfo> space() override;
  EngineCounters counters() const override;
  std::vector<std::string> degraded() const override;
  Status failure() const override;

  Status put(std::string_view key, Bytes value) override;
  Result<std::string> get(std::string_view key) override;
  Status remove(std::string_view key) override;
  Result<std::vector<std::string>> list_keys(std::string_view prefix, std::size_t count_max,
                                             std::string_view after) override;
  Result<std::string> hybrid_get(std::string_view key, Tier* tier) override;

  std::uint64_t run_background() override;
  void set_wakeup(std::function<void()> wakeup) override { wakeup_ = std::move(wakeup); }
  void set_on_moved(std::function<void(InodeId, std::string_view)> on_moved) override;
  EngineAdmin& admin() override;
  Result<CheckReport> check(const CheckOptions& options) override;

 private:
  class Admin;  // engine_admin_impl.h

  // engine.cc
  Status start_rooms();
  Status start_store();
  Status replay_log();
  Status recover();
  Result<std::vector<KnownSegment>> known_segments();
  bool is_held(const SegmentRecord& record) const;
  Result<std::uint64_t> referenced_end(SegmentId segment);  ///< of what is referred to, bytes
  void apply_entry(Position position, std::string_view entry);
  /// Of that session of this node or of none, if one is given.
  Result<std::vector<CommandResult>> commit(Transaction transaction,
                                            std::optional<Incarnation> session = {});
  /// The error of a commit: where it does not pass, the engine fails.
  Error commit_failed(const Error& error);
  /// The command's own error is returned as such.
  Result<CommandResult> commit_one(Command command, std::optional<Incarnation> session = {});
  Status
  admit_change();  ///< alive, writable, and the log has room; takes checkpoint_mutex_ at need
  /// admit_change(), and the session that a change belongs to which takes its time until it is
  /// committed: in a later one the caller's handle may have lost what it needs. None: a lone node.
  Result<std::optional<Incarnation>> begin_change();
  /// Everything that is ordered so far is durable. A failure of the disk is the engine's: kIo. Else
  /// kNoSpace or kTimeout, which pass.
  Status sync_log();
  Status fail(Error error);  ///< the engine's data path is broken: every later change fails
  Status alive() const;      ///< kIo, naming what failed
  std::uint64_t memory_bytes() const {
    return options_.cache_size_bytes + options_.write_buffer_bytes;
  }
  /// When a wait that begins now ends in kTimeout.
  Deadline deadline() const { return {clock_, options_.timeout_ns}; }
  void wake() const {
    if (wakeup_) wakeup_();
  }

  // engine_cluster.cc
  Status open_cluster();
  Status join_cluster();
  void start_lease_task();
  void start_tasks();
  Status start_transport();
  void take_request(Incoming request, Responder responder);
  /// What an entry means to this node beside the catalog. Called by the log's applier.
  void note_applied(const Transaction& transaction, const std::vector<CommandResult>& results);
  void note_orphan(InodeId inode, bool is_own);
  void note_moved(const RenameCommand& command, const CommandResult& result);
  void note_changed(const Command& command, bool is_own);
  void note_holders(const SetHoldersCommand& moved);
  bool is_holder(SegmentId segment) const;
  bool is_needless(SegmentId segment) const;
  void count_cluster(EngineCounters& counters) const;
  Status may_answer();  ///< a lone node always may
  /// Refused if another session than that has begun.
  Status append_now(InodeId inode, Bytes bytes, std::optional<Incarnation> begun,
                    std::uint64_t handle);
  /// The session of this node that serves now. None: it has ended; or this is a lone node.
  Incarnation session() const { return cluster_ ? cluster_->served.load() : Incarnation{}; }
  Result<SpaceInfo> space_of_cluster();
  bool note_log_error(const Error& error);
  std::uint64_t end_dead_sessions();
  std::uint64_t maintain_cluster();  ///< one step; returns when the next is due
  Status follow_segments();
  Status count_held_bytes();
  Status release_expired_holds();  ///< by this node's clock
  Status settle_orphans();
  void leave_cluster();
  AppliedBatch marked_batch();                   ///< of STORE/log-mark; index 0: none
  Status mark_log(const AppliedBatch& applied);  ///< the catalog's files have it
  Status keep_catalog(Position last);            ///< on the way out, up to there
  Status announce_durable();
  Status trim_cluster_log();
  bool log_wants_checkpoint();  ///< background thread only
  static Error log_is_gone(const Error& error);

  // engine_members.cc
  Status refresh_members();  ///< tells of this node, and reads the others
  Result<std::string> name_of(NodeId node);
  std::vector<NodeId> unreached_nodes();
  std::string missing_members() const;
  Status look_for_removed();
  bool is_removed(NodeId node) const;
  Status reach_members();
  Status get_on_with_members() const;
  std::uint64_t look_at_members();  ///< one step; returns when the next is due
  std::uint64_t give_way(const std::string& why);
  Status meet_members();   ///< reads who is up, and says to the transport where
  bool is_missed() const;  ///< some member does not reach this node

  // engine_rejoin.cc
  /// Part of apply_entry().
  void note_own_end(const Transaction& transaction);
  void note_lost_lock(InodeId inode, LockKind kind);
  void note_session_end();
  std::uint64_t rejoin_step();  ///< returns when the next is due
  Status rejoin();
  Status keep_log();
  void forget_lost_pages();
  Status drop_lost_bytes();
  Status drop_lost_bytes(LiveInode& live, bool always);
  Status note_lost_files();
  Status let_go_segments();
  Status seal_let_go();
  Status seal_former(SegmentId segment);

  // engine_snapshot.cc
  Status reach_log();                      ///< the catalog is one that can follow it
  Status fetch_catalog(Position trimmed);  ///< from any peer
  Result<std::optional<FetchedCatalog>> fetch_from_peers(const CatalogOptions& into,
                                                         Position trimmed, std::string* why);
  Status take_catalog(const FetchedCatalog& fetched);
  Result<Answer> answer_peer(const Incoming& request);
  /// Errors: kFenced (that of the peer is wrong).
  Status judge_catalog(NodeId peer, const Acknowledge& message);
  /// This node's is wrong: it ends, and takes another one at the next mount.
  Status doubt_catalog();

  // engine_heal.cc
  std::uint64_t heal_step();  ///< of the cluster; returns when the next is due
  std::optional<HealJob> next_heal_job();
  std::optional<HealJob> heal_job(SegmentId segment, const SegmentRecord& record,
                                  const OrdersById& orders);
  void refresh_orders();
  void note_absences(OrdersById& orders);
  void choose_owner(HealJob& job, NodeId owner) const;
  Result<AlignedBuffer> read_to_heal(const HealJob& job);
  Status copy_batch(HealJob& job);

  // engine_locks.cc
  void start_lock_tasks();
  void answer_lock(const LockWaits::Ended& ended);
  bool pay_lock_debt(const Command& command);  ///< false: it is owed again
  /// Part of note_applied().
  void note_lock(const Command& command, const CommandResult& result, std::uint64_t request);
  void end_lock_waits();
  SessionId own_session() const;
  Result<bool> may_hold(const LockRange& range);  ///< the owner has some lock there

  // engine_replay.cc
  void replay(const Transaction& transaction);

  // engine_data.cc
  Status load_size(LiveInode& live);  ///< under mutex; kNotFound, kIsDirectory
  /// The same where nothing is changed: its mutex is held shared. `live` may be null.
  Result<std::uint64_t> size_to_read(InodeId inode, const LiveInode* live);
  void report_damage(InodeId inode, const Error& error);
  Status read_extents(InodeId inode, std::uint64_t offset, MutableBytes out);
  Status read_extent(const Extent& extent, std::uint64_t offset, MutableBytes out);
  Status read_page(SegmentId segment, std::uint64_t page, std::size_t offset, MutableBytes out,
                   std::uint32_t pages_needed);
  Result<std::vector<Extent>> extents_of(InodeId inode, std::uint64_t offset, std::uint64_t length);
  /// `on_way` as it was before the look at the catalog. Its mutex is held.
  static void overlay_attributes(LiveInode& live, const LiveInode::OnWay& on_way,
                                 Inode& attributes);

  // engine_flush.cc
  /// Bytes of a file that die when new ones come.
  struct Replaced {
    InodeId inode;
    std::uint64_t offset = 0, length = 0;
    bool at_end = false;  ///< `offset` is where the file ends
  };
  /// Reserves `bytes` of store space, for `new_bytes` of a file that take the place of `replaced`;
  /// flushes and cleans if there is none. No lock may be held.
  Status reserve_space(std::uint64_t bytes, std::uint64_t new_bytes, Replaced replaced);
  Result<bool> has_room(std::uint64_t new_bytes, Replaced replaced);
  /// Flushes until `bytes` more fit under the bound of the write buffer. No lock may be held.
  Status make_room_in_buffer(std::uint64_t bytes);
  void note_dirty(const LiveInodePtr& live);  ///< its mutex is held
  /// Accounts for frames that came or went, gives back what is reserved beyond them. Its mutex is
  /// held.
  void settle(LiveInode& live);
  /// Its flush_mutex. Errors: kTimeout.
  Result<std::unique_lock<std::timed_mutex>> lock_flush_mutex(LiveInode& live) const;
  /// The same, while no flush of it is on its way. Errors: also those of settle_flush().
  Result<std::unique_lock<std::timed_mutex>> lock_flush(const LiveInodePtr& live);
  /// Dirty bytes of all of them into segments and one transaction. Their flush_mutexes are held.
  /// Errors: kTimeout also where it is not known what became of it, or of the last one: nothing
  /// else is flushed of them before that is known.
  Status flush_group(const std::vector<LiveInodePtr>& group);
  /// What take_dirty() took is in the list again, as the oldest.
  void list_again(const std::vector<LiveInodePtr>& group);
  Status append_failed(const Error& error);  ///< of the store
  Status bytes_committed(InodeId inode, const Status& status);
  Status log_dirty_bytes(LiveInode& live);  ///< into the log; its flush_mutex and mutex are held
  /// Dirty bytes are in the log or in a segment, in order, not yet durable. Its flush_mutex is
  /// held.
  Status commit_dirty_locked(const LiveInodePtr& live);
  Status commit_dirty(const LiveInodePtr& live);
  /// What was written since, so that nothing is dirty while `lock`, of its mutex, is held on. Its
  /// flush_mutex is held.
  Status commit_late_bytes(const LiveInodePtr& live, std::unique_lock<std::shared_mutex>& lock);
  Status may_flush() const;
  Status flush_older_than(std::uint64_t dirty_since_ns);
  Status flush_everything();  ///< also waits for flushes that others have begun
  std::vector<LiveInodePtr> take_dirty(std::uint64_t dirty_since_ns);
  /// Of a store of that size for users: without what the cleaner needs to work.
  std::uint64_t usable_bytes(std::uint64_t size_bytes) const;
  std::uint64_t dirty_age_ns() const;
  bool has_room_for(std::uint64_t bytes) const;  ///< now, as the disk was at the last look
  std::uint64_t occupied_bytes() const;          ///< live, reserved by fallocate and on its way

  // engine_sent_flush.cc
  struct FlushOutcome {
    SentFlush::Fate fate;
    Status status;
  };
  /// Until its fate is decided, or an error.
  FlushOutcome drive_flush(const SentFlushPtr& flush, const Deadline& until);
  Status commit_next(SentFlush& flush, const Deadline& until);  ///< one step; its mutex is held
  Result<std::vector<CommandResult>> send_next(SentFlush& flush, const Deadline& until);
  void learn_fate(SentFlush& flush);  ///< its mutex is held
  /// Of all flushes of former sessions, before the next one serves.
  Status learn_fates();
  /// Its flush_mutex is held. Errors: what became of its last flush is not known, or not to all.
  Status settle_flush(const LiveInodePtr& live);
  void take_outcome(const LiveInodePtr& live, SentFlush::Fate fate);  ///< its flush_mutex is held

  // engine_names.cc
  Status commit_source_of_replace(InodeId old_parent, std::string_view old_name, InodeId new_parent,
                                  std::string_view new_name);
  void orphaned(InodeId inode);
  /// All of them together: in a cluster each transaction is a round of all nodes.
  Status reclaim(std::span<const InodeId> inodes);
  Status reclaim(InodeId inode) { return reclaim({&inode, 1}); }
  Status drop_dirty_bytes(InodeId inode);
  void reclaim_later(InodeId inode);
  Status unlink_kind(InodeId parent, std::string_view name, bool directory);

  // engine_space.cc
  Status clean_for(std::uint64_t bytes);
  Result<std::uint64_t> bytes_in_extents(InodeId inode, std::uint64_t offset, std::uint64_t length);
  Result<std::uint64_t> clone_once(InodeId source, std::uint64_t source_offset, InodeId target,
                                   std::uint64_t target_offset, std::uint64_t length,
                                   std::optional<Incarnation> begun);
  void follow_reservations();  ///< the store's reservation follows the catalog's reserved bytes

  // engine_disk.cc
  Status open_ballast();
  std::uint64_t keep_free_bytes() const;  ///< of the disk, when a file for user data is made
  void look_at_disk();
  /// As admit_change, for what makes the store larger: kNoSpace while the disk is full.
  Status admit_growth();
  bool disk_has_room();                   ///< looks again before it says no
  std::uint64_t log_limit_bytes() const;  ///< of needed entries, before a change waits
  /// The disk has room for a checkpoint: RocksDB takes no more writes once a flush was refused.
  Status admit_checkpoint();

  // engine_background.cc
  Status checkpoint();
  Status make_room_in_log();                        ///< by a checkpoint, its own or another one's
  Status checkpoint_locked(const Deadline& until);  ///< checkpoint_mutex_ is held
  Status commit_atimes(bool all);
  /// Tells of a step that failed, once until it succeeds or fails otherwise.
  void tell(std::string_view step, const Status& status);
  void background_look_at_disk();
  Status background_flush(std::uint64_t now);
  Status background_reclaim();

  // engine_cleaner.cc
  static constexpr double kWhollyDead = 1.0;  ///< dead share of a segment without live bytes
  /// Frees one segment with at least that share of dead bytes; false if there is none. clean_mutex_
  /// is held.
  Result<bool> clean_one(double dead_share_min);
  Result<SegmentId> pick_victim(double dead_share_min, bool* empty);
  Status move_live_bytes(SegmentId victim);
  Status drop_segment(SegmentId victim);
  Status remove_dropped();
  Status drop_dead_segments();  ///< all that have no live bytes

  // engine_kv.cc
  Result<InodeId> resolve(std::string_view key);
  Result<InodeId> make_parents(std::string_view key, std::string_view* name);
  // `space` was reserved for the value, and is given back. Errors: also those of lost races.
  Result<std::vector<Placed>> place_value(Bytes value, std::uint64_t space);
  Status create_value(InodeId parent, std::string_view name, Bytes value, std::uint64_t space);
  Status replace_value(InodeId inode, Bytes value, std::uint64_t space);
  Result<std::string> read_value(InodeId inode);
  /// The inode's change counter, and not one between two commands of a transaction.
  Result<std::uint64_t> settled_change(InodeId inode) const;
  Status list_below(InodeId directory, const std::string& path, KeyList& keys);

  // engine_check.cc
  CatalogCheckOptions catalog_check(const CheckOptions& options) const;
  Status check_segments(const CheckOptions& options, CheckReport& report);
  /// Tells who uses bytes of these pages.
  Status tell_owners(SegmentId id, std::span<const PageRange> bad, const CheckOptions& options,
                     CheckReport& report);

  Disk& disk_;
  Clock& clock_;
  Random& random_;
  const EngineOptions options_;
  const Superblock superblock_;

  Ballast ballast_;  // first of the rooms: files of the others stand on it
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<LocalMissSource> local_misses_;
  MissSource* misses_ = nullptr;  ///< local_misses_, or the cluster's
  PageCache pages_;
  ExtentCache extents_;
  Readahead readahead_;
  BufferPool frames_{kPageSize};                              // of the write buffer
  BufferPool chunks_{Readahead::kChunkPagesMax * kPageSize};  // of misses
  UnreferencedAppends unreferenced_;                          // ended by what the live inodes have
  LiveInodeTable live_;
  std::unique_ptr<SharedLog> log_;         // its hook and applier use the others
  std::unique_ptr<ClusterParts> cluster_;  // last of the rooms; null on a lone node

  std::function<void()> wakeup_;
  std::mutex forget_mutex_;  // a leaf
  std::function<void(InodeId)> forget_pages_;
  std::atomic<bool> closed_ = false, failed_ = false, replaying_ = true;
  mutable std::mutex failure_mutex_;
  std::optional<Error> failure_;
  std::unordered_set<std::string> reported_damage_;  // under failure_mutex_

  /// What the store's files may take together, as the disk was at the last look.
  std::atomic<std::uint64_t> size_now_;
  std::atomic<bool> disk_is_full_ = false, lacks_inodes_ = false;
  std::atomic<bool> serving_ = false;  // recovery is over
  std::string disk_told_;              // background thread only

  std::mutex results_mutex_;
  std::unordered_map<Position, Result<std::vector<CommandResult>>>
      results_;  // applied, not yet fetched

  std::mutex dirty_mutex_;
  std::condition_variable buffer_room_;  // with dirty_mutex_
  std::deque<std::pair<std::uint64_t, LiveInodePtr>>
      dirty_list_;                              // by the time of the first dirty byte
  std::atomic<std::uint64_t> dirty_bytes_ = 0;  // frames out, whole pages

  std::mutex reservation_mutex_;
  std::uint64_t followed_reserved_bytes_ = 0;

  mutable std::mutex orphans_mutex_;
  std::unordered_set<InodeId> orphans_;
  std::deque<InodeId> reclaim_queue_;  // large ones, freed in the background

  std::mutex atime_mutex_;
  std::unordered_map<InodeId, Timestamp> atimes_;  // gathered, not yet appended
  std::uint64_t atimes_due_ns_ = 0;

  // Of a cluster: a transaction is applied, command by command. Only the catalog is called.
  mutable std::mutex whole_mutex_;
  std::timed_mutex checkpoint_mutex_;
  std::timed_mutex clean_mutex_;
  std::unordered_set<SegmentId> damaged_segments_;           // under clean_mutex_
  std::vector<SegmentId> dropped_segments_;                  // under clean_mutex_; their files stay
  std::uint64_t last_sync_ns_ = 0, last_checkpoint_ns_ = 0;  // background thread only
  std::map<std::string_view, std::string> told_;             // background thread only
  std::atomic<Position> checkpointed_;  // up to here the catalog's files have it

  struct Counts {
    std::atomic<std::uint64_t> read_bytes = 0, written_bytes = 0, page_hits = 0, page_misses = 0,
                               buffer_hit_pages = 0, syncs = 0, flushes = 0, checkpoints = 0,
                               inline_bytes = 0, cleaned_segments = 0, errors = 0, leases_lost = 0;
  };
  Counts counts_;
  const std::unique_ptr<Admin> admin_;
  std::uint64_t checkpointed_held_bytes_ = 0;  // of a cluster's log; background thread only
};

/// Locks of several inodes are taken in order of their ids.
class FlushLocks {
 public:
  explicit FlushLocks(std::vector<LiveInodePtr>& inodes);  ///< sorts them, drops doubles
  Status take(const Deadline& until);                      ///< errors: kTimeout
 private:
  std::vector<std::unique_lock<std::timed_mutex>> locks_;
};

}  // namespace kvsyncfs
