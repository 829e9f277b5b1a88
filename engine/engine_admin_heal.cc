// What an operator asks of the copies of the whole volume.
#include <algorithm>
#include <unordered_set>

#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

namespace {

constexpr std::size_t kLostPathsMax = 10'000;

using Sessions = std::map<NodeId, SessionRecord>;

bool lives(const Sessions& sessions, NodeId node) {
  const auto found = sessions.find(node);
  return found != sessions.end() && found->second.lives();
}

void add(SegmentShare& share, std::uint64_t bytes) {
  ++share.segments;
  share.bytes += bytes;
}

Error lone() { return {Code::kUnsupported, "the store of a lone node has no other copies"}; }

}  // namespace

OrdersById EngineImpl::Admin::orders() const {
  std::lock_guard lock(engine_.cluster_->orders_mutex);
  return engine_.cluster_->orders;
}

void EngineImpl::Admin::count_copies(const SegmentRecord& record, std::uint64_t bytes,
                                     const Sessions& sessions, std::size_t replicas,
                                     HealReport& report) {
  std::size_t copies = 0;
  for (const NodeId holder : record.holders) {
    if (lives(sessions, holder)) ++copies;
    for (HealReport::Leaving& leaving : report.leaving)
      if (leaving.node.id == holder) add(leaving.left, bytes);
  }
  if (copies == 0)
    add(report.lost, bytes);
  else if (copies < replicas)
    add(report.at_risk, (replicas - copies) * bytes);
}

Result<HealReport> EngineImpl::Admin::heal() {
  if (!engine_.cluster_) return lone();
  ClusterParts& cluster = *engine_.cluster_;
  const OrdersById orders = this->orders();
  const Sessions sessions = engine_.catalog_->sessions();
  HealReport report;
  report.due_segments = cluster.at_risk;
  report.healed_bytes = cluster.healed_bytes;
  report.rate_bytes = orders.heal_rate_bytes.value_or(kHealRateBytes);
  report.delay_ns = engine_.options_.heal_delay_ns;
  std::set<NodeId> away;
  for (const auto& [node, session] : sessions)
    if (!session.lives()) away.insert(node);
  report.away = views_of(away);
  report.maintained = views_of(orders.maintained);
  for (NodeView& node : views_of(orders.draining)) report.leaving.push_back({std::move(node), {}});
  KVSYNCFS_ASSIGN(const auto segments, engine_.catalog_->segments());
  for (const auto& [id, record] : segments) {
    const bool is_open = record.state == SegmentState::kOpen;
    count_copies(record, is_open ? record.live_bytes : record.length, sessions,
                 cluster.seams.replicas, report);
  }
  return report;
}

Status EngineImpl::Admin::set_heal_rate(std::uint64_t bytes_per_second) {
  if (!engine_.cluster_) return lone();
  if (bytes_per_second == 0) return Error(Code::kInvalid, "a rate of 0");
  return engine_.cluster_->order_store.set_heal_rate(
      bytes_per_second, engine_.clock_.boot_ns() + engine_.options_.timeout_ns / 3);
}

Status EngineImpl::Admin::heal_now() {
  if (!engine_.cluster_) return lone();
  std::set<NodeId> away;
  const Sessions sessions = engine_.catalog_->sessions();
  for (const auto& [node, session] : sessions)
    if (!session.lives()) away.insert(node);
  for (const NodeView& node : views_of(away)) {
    if (node.name.empty()) return Error(Code::kTimeout, "etcd does not tell the nodes' names");
    KVSYNCFS_TRY(engine_.cluster_->order_store.replace(
        node.name, sessions.at(node.id).session.value,
        engine_.clock_.boot_ns() + engine_.options_.timeout_ns / 3));
  }
  return {};
}

/// A session may be over before the catalog says so, and a node dead before its lease ends: a
/// holder counts only if it is a member too, and reached.
Result<SegmentShare> EngineImpl::Admin::last_copies(NodeId node) {
  if (!engine_.cluster_) return lone();
  KVSYNCFS_TRY(engine_.may_answer());
  const Sessions sessions = engine_.catalog_->sessions();
  const auto members = engine_.cluster_->membership.map();
  const auto has_it = [&](NodeId holder) {
    const bool is_reached =
        holder == engine_.cluster_->seams.node || !engine_.cluster_->segments.is_down(holder);
    return holder != node && is_reached && lives(sessions, holder) &&
           members->find(holder) != nullptr;
  };
  SegmentShare last;
  KVSYNCFS_ASSIGN(const auto segments, engine_.catalog_->segments());
  for (const auto& [id, record] : segments) {
    const auto& holders = record.holders;
    if (record.live_bytes == 0 || std::find(holders.begin(), holders.end(), node) == holders.end())
      continue;
    if (std::none_of(holders.begin(), holders.end(), has_it)) add(last, record.live_bytes);
  }
  return last;
}

bool EngineImpl::Admin::is_lost(SegmentId id, const SegmentRecord& record,
                                const Sessions& sessions) const {
  if (record.live_bytes == 0) return false;
  if (!engine_.cluster_) return !engine_.store_->file(id);
  return std::none_of(record.holders.begin(), record.holders.end(),
                      [&](NodeId holder) { return lives(sessions, holder); });
}

Result<LostFiles> EngineImpl::Admin::lost() {
  LostFiles files;
  const Sessions sessions = engine_.catalog_->sessions();
  KVSYNCFS_ASSIGN(const auto segments, engine_.catalog_->segments());
  std::unordered_set<InodeId> users;
  std::set<NodeId> holders;
  for (const auto& [id, record] : segments) {
    if (!is_lost(id, record, sessions)) continue;
    add(files.lost, record.live_bytes);
    holders.insert(record.holders.begin(), record.holders.end());
    KVSYNCFS_ASSIGN(const auto extents, engine_.catalog_->segment_extents(id, 0, ~std::size_t{0}));
    for (const auto& [inode, extent] : extents) {
      if (users.size() < kLostPathsMax || users.contains(inode))
        users.insert(inode);
      else
        files.is_cut = true;
    }
  }
  files.nodes = views_of(holders);
  if (users.empty()) return files;
  KVSYNCFS_ASSIGN(const auto paths, engine_.catalog_->paths(users));
  for (const auto& [inode, path] : paths) files.paths.push_back(path);
  files.without_path = users.size() - paths.size();
  std::sort(files.paths.begin(), files.paths.end());
  return files;
}

}  // namespace kvsyncfs
