// The engine among the nodes of its volume: who is up, who is reached, and what follows when one is
// not. ARCHITECTURE.md, "Who cannot be heard gives way".
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {

constexpr std::uint64_t kPeriodNs = 1'000'000'000;
constexpr std::uint64_t kPeriodOfCutsNs = 300'000'000;
/// A peer that is not reached for so long, or waits for so long to be told, is called unreached.
constexpr std::uint64_t kUnreachedNs = 1'000'000'000;

}  // namespace

Status EngineImpl::refresh_members() {
  ClusterSeams& seams = cluster_->seams;
  const std::uint64_t until_ns = clock_.boot_ns() + options_.timeout_ns / 3;
  Member& self = cluster_->self;
  self = {};
  self.id = seams.node;
  self.name = seams.node_name;
  self.incarnation = cluster_->session.incarnation();
  self.addresses = seams.addresses;
  self.rack = seams.rack;
  self.capacity_bytes = superblock_.size_bytes;
  self.free_bytes = store_->free_bytes();
  self.version = seams.version;
  self.features = seams.features;
  self.unreached = unreached_nodes();
  cluster_->is_amiss = CutJudge::concerns(*cluster_->membership.map(), self);
  if (cluster_->is_amiss) self.beat = ++cluster_->beat;
  KVSYNCFS_TRY(cluster_->membership.announce(self, cluster_->log.lease(), until_ns));
  return meet_members();
}

Status EngineImpl::meet_members() {
  ClusterSeams& seams = cluster_->seams;
  KVSYNCFS_TRY(cluster_->membership.refresh(clock_.boot_ns() + options_.timeout_ns / 3));
  for (const Member& member : cluster_->membership.map()->members) {
    auto& known = cluster_->addresses[member.id];
    if (member.id == seams.node || known == member.addresses) continue;
    known = member.addresses;
    if (const Status fits = get_on(cluster_->self, member); !fits)
      options_.warn("not to be a node beside this one: " + describe(fits.error()));
    KVSYNCFS_TRY(seams.transport.set_peer(member.id, member.addresses));
  }
  return {};
}

/// A node that is away has no line among the members.
Result<std::string> EngineImpl::name_of(NodeId node) {
  auto& names = cluster_->names;
  if (const auto known = names.find(node); known != names.end()) return known->second;
  KVSYNCFS_ASSIGN(const auto all,
                  cluster_->records.nodes(clock_.boot_ns() + options_.timeout_ns / 3));
  for (const NamedNode& named : all) names[named.record.id] = named.name;
  {
    std::lock_guard lock(cluster_->mutex);
    names.insert(cluster_->removed.begin(), cluster_->removed.end());
  }
  const auto known = names.find(node);
  if (known == names.end()) return Error(Code::kNotFound, fmt::format("node {}", node.value));
  return known->second;
}

/// Of those that were ever met: also a node that is about to come back sees that it is not reached.
std::vector<NodeId> EngineImpl::unreached_nodes() {
  const std::uint64_t now_ns = clock_.boot_ns();
  const auto unheard = cluster_->session.unheard(kUnreachedNs);
  std::vector<NodeId> unreached;
  for (const auto& [node, addresses] : cluster_->addresses) {
    if (!cluster_->segments.is_down(node)) {
      cluster_->down_since_ns.erase(node);
      if (!unheard.contains(node)) continue;
    } else if (now_ns - cluster_->down_since_ns.try_emplace(node, now_ns).first->second <
               kUnreachedNs) {
      continue;
    }
    if (unreached.size() < kMemberUnreachedMax) unreached.push_back(node);
  }
  return unreached;
}

std::uint64_t EngineImpl::look_at_members() {
  if (cluster_->gave_way) {
    cluster_->gave_way = false;
    if (const Status freed = cluster_->log.free_lease(); !freed)
      options_.warn("the lease of this node ends by itself: " + describe(freed.error()));
  }
  if (closed_ || failed_) return clock_.boot_ns() + kPeriodNs;
  if (cluster_->catalog_is_wrong.exchange(false)) {
    if (const Status status = doubt_catalog(); !status)
      options_.warn("the catalog of this store is wrong: " + describe(status.error()));
    const std::uint64_t due_ns = give_way("its catalog is not that of most nodes");
    // It must not join again with this one.
    static_cast<void>(fail(Error(Code::kCorrupt, "the catalog is not that of most nodes")));
    return due_ns;
  }
  if (cluster_->session.is_out()) return rejoin_step();
  if (const Status status = refresh_members(); !status)
    options_.warn("members of the cluster: " + describe(status.error()));
  else if (cluster_->cuts.look(*cluster_->membership.map(), clock_.boot_ns()))
    return give_way("it lives with nodes that it does not reach, or that do not reach it");
  if (const Status status = look_for_removed(); !status)
    options_.warn("removed nodes: " + describe(status.error()));
  return clock_.boot_ns() + (cluster_->is_amiss ? kPeriodOfCutsNs : kPeriodNs);
}

/// Returns when the lease may be freed.
std::uint64_t EngineImpl::give_way(const std::string& why) {
  const std::uint64_t lease_ns =
      static_cast<std::uint64_t>(cluster_->seams.lease_ttl_s) * 1'000'000'000;
  cluster_->log.give_way(why);
  note_session_end();
  cluster_->gave_way = true;
  return clock_.boot_ns() + lease_ns / 10;
}

/// Members that this node does not reach, for people; empty: none.
std::string EngineImpl::missing_members() const {
  std::string missing;
  for (const Member& member : cluster_->membership.map()->members)
    if (member.id != cluster_->seams.node && cluster_->segments.is_down(member.id))
      missing += (missing.empty() ? "" : ", ") + member.name;
  return missing;
}

/// A node that cannot speak with all others does not join them: they would wait for it.
Status EngineImpl::get_on_with_members() const {
  const auto map = cluster_->membership.map();
  for (const Member& member : map->members)
    if (member.id != cluster_->seams.node) KVSYNCFS_TRY(get_on(cluster_->self, member));
  if (map->newer.empty()) return {};
  return Error(Code::kNewerFormat,
               fmt::format("node {} is of a later version, which this one of version {} cannot be "
                           "beside",
                           map->newer.front(), cluster_->self.version));
}

bool EngineImpl::is_missed() const {
  const NodeId self = cluster_->seams.node;
  const auto map = cluster_->membership.map();
  return std::any_of(map->members.begin(), map->members.end(), [self](const Member& member) {
    const auto& unreached = member.unreached;
    return member.id != self && std::binary_search(unreached.begin(), unreached.end(), self);
  });
}

/// Before it joins: from then on the others wait for its word. One that has just died is a member
/// until its lease ends. Nobody tells of them; the wait itself looks often enough.
Status EngineImpl::reach_members() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  std::uint64_t read_ns = clock_.boot_ns();
  KVSYNCFS_TRY(get_on_with_members());
  Status read;
  const bool reached = deadline().wait(never, lock, [&] {
    if (clock_.boot_ns() - read_ns >= kPeriodOfCutsNs) {
      read = refresh_members();
      read_ns = clock_.boot_ns();
    }
    return read && missing_members().empty();
  });
  KVSYNCFS_TRY(read);
  if (reached) return {};
  return Error(
      Code::kUnreachable,
      fmt::format("nodes of the volume that are up are not reached: {}", missing_members()));
}

}  // namespace kvsyncfs
