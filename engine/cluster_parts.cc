#include "engine/cluster_parts.h"

#include <algorithm>

namespace kvsyncfs {

namespace {
/// With what it takes to see a cut, and to end a session, it is one lease.
std::uint64_t cut_patience_ns(const ClusterSeams& seams) {
  return static_cast<std::uint64_t>(seams.lease_ttl_s) * 1'000'000'000 / 5 * 3;
}
}  // namespace

bool OpenHandles::open(InodeId inode) {
  std::lock_guard lock(mutex_);
  ++open_[inode];
  return !kept_.insert(inode).second;
}

bool OpenHandles::close(InodeId inode) {
  std::lock_guard lock(mutex_);
  const auto found = open_.find(inode);
  if (found == open_.end() || --found->second > 0) return false;
  open_.erase(found);
  let_go(inode);
  return true;
}

void OpenHandles::let_go(InodeId inode) {
  if (is_used(inode) || held_.erase(inode) == 0) return;
  kept_.erase(inode);
  news_.push_back(inode);
}

void OpenHandles::session_ended() {
  std::lock_guard lock(mutex_);
  in_kernel_.clear();
  held_.clear();
  news_.clear();
}

bool OpenHandles::is_open(InodeId inode) {
  std::lock_guard lock(mutex_);
  return open_.contains(inode);
}

std::vector<InodeId> OpenHandles::all_open() {
  std::vector<InodeId> all;
  std::lock_guard lock(mutex_);
  for (const auto& [inode, handles] : open_) all.push_back(inode);
  return all;
}

bool OpenHandles::may_stay(InodeId inode) {
  std::lock_guard lock(mutex_);
  return held_.contains(inode) || std::find(news_.begin(), news_.end(), inode) != news_.end();
}

void OpenHandles::forget_pages(InodeId inode) {
  std::lock_guard lock(mutex_);
  kept_.erase(inode);
}

bool OpenHandles::has_right_pages(InodeId inode) {
  std::lock_guard lock(mutex_);
  return kept_.contains(inode);
}

void OpenHandles::orphaned(InodeId inode, bool in_kernel) {
  std::lock_guard lock(mutex_);
  if (in_kernel) in_kernel_.insert(inode);
  news_.push_back(inode);
}

void OpenHandles::left_kernel(InodeId inode) {
  std::lock_guard lock(mutex_);
  kept_.erase(inode);
  if (in_kernel_.erase(inode) > 0) let_go(inode);
}

HoldOrphansCommand OpenHandles::take_news(std::size_t count_max) {
  HoldOrphansCommand command;
  std::lock_guard lock(mutex_);
  for (; !news_.empty() && count_max > 0; --count_max) {
    const InodeId inode = news_.front();
    news_.pop_front();
    if (is_used(inode)) {
      held_.insert(inode);
      command.held.push_back(inode);
    } else {
      kept_.erase(inode);
      command.released.push_back(inode);
    }
  }
  return command;
}

void OpenHandles::give_back(const HoldOrphansCommand& news) {
  std::lock_guard lock(mutex_);
  news_.insert(news_.end(), news.held.begin(), news.held.end());
  news_.insert(news_.end(), news.released.begin(), news.released.end());
}

ClusterParts::ClusterParts(ClusterSeams& cluster_seams, EtcdLog& etcd_log, Catalog& catalog,
                           SegmentStore& store, Clock& clock, std::uint64_t volume_tag,
                           std::uint64_t timeout_ns, std::function<void(std::string_view)> warn)
    : seams(cluster_seams),
      log(etcd_log),
      membership(seams.etcd, clock, seams.volume),
      records(seams.etcd, clock, seams.volume),
      segments(seams, catalog, store, membership, clock, volume_tag, timeout_ns, std::move(warn)),
      session(seams, etcd_log, catalog, clock, timeout_ns),
      snapshots(catalog, etcd_log, clock),
      judge(seams.node),
      order_store(seams.etcd, clock, seams.volume),
      cuts(seams.node, cut_patience_ns(seams)),
      durable(seams.etcd, seams.volume, seams.generation) {}

}  // namespace kvsyncfs
