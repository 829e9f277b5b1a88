// What an engine has more of in a cluster. Part of engine_impl.h.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/base/gate.h"
#include "engine/catalog_judge.h"
#include "engine/catalog_snapshots.h"
#include "engine/cluster/cuts.h"
#include "engine/cluster/durable_positions.h"
#include "engine/cluster/membership.h"
#include "engine/cluster/node_orders.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_seams.h"
#include "engine/kept_attributes.h"
#include "engine/lock_waits.h"
#include "engine/lost_handles.h"
#include "engine/node_segments.h"
#include "engine/node_session.h"

namespace kvsyncfs {

/// Handles that are open here, and orphans: each session that lived when an inode lost its last
/// name says whether it has a handle open on it. Thread: any; a leaf mutex.
class OpenHandles {
 public:
  /// Returns whether the kernel's pages of an earlier open are still right.
  bool open(InodeId inode);
  /// Returns whether it was the file's last.
  bool close(InodeId inode);
  /// An inode without a name that has just been opened: this node has not let it go yet.
  bool may_stay(InodeId inode);
  /// The file's bytes were changed by another node, or where the kernel did not see it.
  void forget_pages(InodeId inode);
  /// None was changed so since it was opened last.
  bool has_right_pages(InodeId inode);

  /// The inode lost its last name: to be said of it soon. `in_kernel`: this node's kernel took the
  /// name away and says when nobody uses the inode any more, so that it is held until then.
  void orphaned(InodeId inode, bool in_kernel = false);
  /// The kernel knows the inode no more, nor has pages of it.
  void left_kernel(InodeId inode);
  /// What is to be said now; said once.
  HoldOrphansCommand take_news(std::size_t count_max);
  /// It was not said, after all.
  void give_back(const HoldOrphansCommand& news);
  /// And with it all that it said.
  void session_ended();
  bool is_open(InodeId inode);
  std::vector<InodeId> all_open();

 private:
  bool is_used(InodeId inode) const { return open_.contains(inode) || in_kernel_.contains(inode); }
  void let_go(InodeId inode);

  std::mutex mutex_;
  std::unordered_map<InodeId, std::size_t> open_;  // handles
  std::unordered_set<InodeId> in_kernel_;          // orphans without a handle, as orphaned() says
  std::unordered_set<InodeId> kept_;               // the kernel may have right pages of these
  std::unordered_set<InodeId> held_;               // orphans that this node said it holds
  std::deque<InodeId> news_;                       // orphans of which something is to be said
};

/// So many bytes a second are copied unless an operator says otherwise: users' work goes on.
inline constexpr std::uint64_t kHealRateBytes = 64u << 20;

/// A segment on its way to a node that takes the place of one that is gone. The healing task's own.
struct HealJob {
  SegmentId segment;
  NodeId target;                    ///< 0: those that stay are enough
  std::uint64_t page = 0, end = 0;  ///< the next batch's, and of the segment
  SetHoldersCommand result;         ///< committed when all of it has arrived
  std::size_t copies = 0;           ///< that live now, leaving ones among them
  bool is_needed = false;           ///< a node has to get a copy
};

/// NodeOrders, by number, of nodes that there are.
struct OrdersById {
  std::set<NodeId> draining, maintained;
  std::map<NodeId, SessionId> replaced;
  std::set<NodeId> given_up;  ///< away for longer than is borne, or replaced
  std::optional<std::uint64_t> heal_rate_bytes;
};

struct ClusterParts {
  ClusterParts(ClusterSeams& seams, EtcdLog& etcd_log, Catalog& catalog, SegmentStore& store,
               Clock& clock, std::uint64_t volume_tag, std::uint64_t timeout_ns,
               std::function<void(std::string_view)> warn);

  /// No call of the transport comes in any more.
  void detach() { gate->close(); }

  /// Of the transport's handlers: the transport outlives the engine.
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  ClusterSeams& seams;
  EtcdLog& log;
  Membership membership;
  VolumeRecordStore records;
  NodeSegments segments;
  NodeSession session;
  CatalogSnapshots snapshots;
  CatalogJudge judge;
  std::atomic<bool> catalog_is_wrong = false;  ///< so say most of the others
  std::atomic<bool> catalogs_differ = false;   ///< and nobody can say which is right
  OpenHandles handles;
  KeptAttributes kept_attributes;
  LockWaits lock_waits;
  /// In segments of which this node has a copy; all that are there where a hold keeps the segment.
  std::atomic<std::uint64_t> held_live_bytes = 0;
  std::atomic<std::uint64_t> kept_dead_bytes = 0;  ///< of the volume, by holds alone
  std::atomic<bool> sessions_ended = true;         ///< orphans may be nobody's since

  std::mutex moved_mutex;  ///< a leaf; held over the call
  std::function<void(InodeId, std::string_view)> on_moved;

  LostHandles lost_handles;
  /// Incarnation of the session that serves; none since its end.
  std::atomic<Incarnation> served = Incarnation{};

  std::mutex mutex;                      ///< a leaf; guards the rest of this block
  std::unordered_set<InodeId> unlocked;  ///< files whose locks here went with the last session
  std::vector<SegmentId> let_go;         ///< open ones of a former session of this node
  std::deque<std::pair<SegmentId, std::uint64_t>> sealed;  ///< by others, with their lengths
  std::deque<SegmentId> deleted;                           ///< by others
  std::map<NodeId, std::string> removed;  ///< nodes that were taken out for good, with their names

  std::map<NodeId, std::string> names;  ///< known to the task that ends dead sessions

  NodeOrderStore order_store;
  std::mutex orders_mutex;  ///< a leaf
  OrdersById orders;        ///< as the healing task read them last

  // The healing task's own.
  std::optional<HealJob> heal;
  std::uint64_t orders_due_ns = 0;
  std::map<NodeId, std::uint64_t> away_since_ns;
  std::map<SegmentId, std::uint64_t> heal_not_before_ns;  ///< of those that failed lately
  std::atomic<std::uint64_t> at_risk = 0;                 ///< segments that lack a holder
  std::atomic<std::uint64_t> healed_bytes = 0;            ///< copied to new holders

  // The own of the task that looks at the members.
  std::map<NodeId, std::vector<std::string>> addresses;  ///< as the transport knows them
  Member self;                                           ///< as it was announced last
  std::map<NodeId, std::uint64_t> down_since_ns;
  CutJudge cuts;
  bool is_amiss = false;   ///< this node's line has to beat
  bool gave_way = false;   ///< the lease is to be freed
  std::string not_joined;  ///< why it did not join again, as was told last
  /// Files whose pages the kernel has to drop when this node has joined again.
  std::unordered_set<InodeId> forgotten;
  std::uint64_t beat = 0;  ///< of the last line

  // The upkeep's own.
  std::uint64_t counts_due_ns = 0;
  std::uint64_t log_looked_ns = 0;  ///< when it was last asked what may go

  DurablePositions durable;
  bool keeps_log = false;     ///< by a marker in etcd; the upkeep's, when it runs
  std::mutex announce_mutex;  ///< held over a call of etcd; the upkeep's and close()'s
  Position announced;
  std::mutex keeper_mutex;  ///< a leaf
  std::string log_keeper;   ///< node that keeps a long log from being trimmed; empty: none
};

}  // namespace kvsyncfs
