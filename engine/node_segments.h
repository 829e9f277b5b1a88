// The segments of a cluster as one node sees them: who is to hold a new one, how its batches get
// there, and where the pages of all of them come from. Thread: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "engine/catalog/catalog.h"
#include "engine/cluster/membership.h"
#include "engine/cluster_seams.h"
#include "engine/store/segment_store.h"
#include "engine/sync/page_puller.h"
#include "engine/sync/peer_server.h"
#include "engine/sync/shipper.h"
#include "engine/tier/miss_source.h"

namespace kvsyncfs {

class NodeSegments {
 public:
  /// P3: so many copies before a change says that it is stable, if the volume has so many at all.
  static constexpr std::size_t kHoldersMin = 2;

  /// All borrowed. `warn`: one line, any thread.
  NodeSegments(const ClusterSeams& seams, Catalog& catalog, SegmentStore& store,
               Membership& membership, Clock& clock, std::uint64_t volume_tag,
               std::uint64_t timeout_ns, std::function<void(std::string_view)> warn);

  /// The command that opens the next segment of this node. Errors: kUnreachable (fewer nodes live
  /// than must hold it).
  Result<OpenPlacedSegmentCommand> place();
  /// A node that may take a copy of the segment and is none of `holders`; 0: there is none.
  NodeId place_copy(SegmentId segment, const std::vector<NodeId>& holders);
  /// These get no new segments and no copies, this node's own new ones excepted.
  void set_draining(std::set<NodeId> nodes);
  /// Another holder can take new bytes, or none lives that could say no, as of the last
  /// look_at_room(). Errors: kNoSpace.
  Status check_room() const;
  void look_at_room();
  /// As StoreOptions::ship.
  StoreOptions::Shipment ship(SegmentId segment, std::uint64_t page, std::span<const Bytes> pieces);
  /// As HeldLength.
  Result<std::uint64_t> held_length(SegmentId segment) const;
  /// Misses: from this node's own copy if it has a good one, else from another holder.
  MissSource& misses() { return misses_; }
  PeerServer& server() { return server_; }

  /// A session of a peer came up or went down, as the transport sees it.
  void note_peer(const PeerEvent& event);
  bool is_down(NodeId node) const;
  /// What new segments lack, one line; empty: nothing.
  std::string degraded() const;
  std::uint64_t pulled_pages() const { return misses_.pulled_pages(); }

 private:
  class Misses final : public MissSource {
   public:
    Misses(NodeSegments& segments, std::uint64_t volume_tag, std::uint64_t timeout_ns)
        : segments_(segments),
          puller_(segments.seams_.transport, segments.clock_, volume_tag, timeout_ns) {}
    Status load(SegmentId segment, std::uint64_t offset, MutableBytes out) override;
    Result<std::size_t> load_some(SegmentId segment, std::uint64_t page, MutableBytes out) override;
    std::uint64_t pulled_pages() const { return pulled_pages_.load(std::memory_order_relaxed); }

   private:
    NodeSegments& segments_;
    PagePuller puller_;
    std::atomic<std::uint64_t> pulled_pages_ = 0;
  };

  /// Nodes that live and take new segments. The map has to stay.
  std::vector<Candidate> candidates(const ClusterMap& map) const;
  std::vector<NodeId> new_holders(std::size_t needed);
  Result<std::vector<NodeId>> other_holders(SegmentId segment) const;
  void lost(NodeId node, const Error& why);
  bool is_up(NodeId node) const;  ///< the lock is held
  /// Waits while the last one of these is away only for a moment, as in a restart. False: none is
  /// back.
  bool await_return(const std::vector<NodeId>& nodes);

  const ClusterSeams& seams_;
  Catalog& catalog_;
  SegmentStore& store_;
  Membership& membership_;
  Clock& clock_;
  const std::uint64_t made_ns_;
  const std::function<void(std::string_view)> warn_;
  Shipper shipper_;
  Misses misses_;
  PeerServer server_;

  struct Contact {
    bool is_up = false;
    std::uint64_t since_ns = 0;
  };

  std::atomic<bool> others_are_full_ = false;
  mutable std::mutex mutex_;  // a leaf; guards the rest
  std::condition_variable contacts_changed_;
  std::map<NodeId, Contact> contacts_;
  std::map<NodeId, std::uint64_t> shunned_until_ns_;
  std::set<NodeId> draining_;
  std::uint64_t opened_ = 0;
  std::size_t lacking_ = 0;  // holders that the last segment lacks
};

}  // namespace kvsyncfs
