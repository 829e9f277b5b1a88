// What the engine counts, read when somebody asks.
#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

std::uint64_t EngineImpl::dirty_age_ns() const {
  const std::uint64_t now_ns = clock_.boot_ns();
  std::uint64_t oldest_ns = now_ns;
  for (const LiveInodePtr& live : live_.all())
    for (const std::uint64_t since_ns :
         {live->flushing_since_ns.load(), live->dirty_since_ns.load()})
      if (since_ns != 0) oldest_ns = std::min(oldest_ns, since_ns);
  return now_ns - oldest_ns;
}

void EngineImpl::count_cluster(EngineCounters& counters) const {
  counters.pulled_pages = cluster_->segments.pulled_pages();
  counters.healed_bytes = cluster_->healed_bytes;
  counters.at_risk_segments = cluster_->at_risk;
  // Read when somebody asks: a node does not keep count of what the others leave.
  if (const auto orphans = catalog_->orphans()) counters.orphans = orphans->size();
  counters.members_up = cluster_->membership.map()->members.size();
  counters.unacknowledged = cluster_->session.unacknowledged();
  const TransportCounters net = cluster_->seams.transport.counters();
  counters.refused_connections = net.refused_secret + net.refused_volume + net.refused_identity +
                                 net.refused_version + net.refused_tls + net.refused_crowd +
                                 net.handshake_timeouts;
}

EngineCounters EngineImpl::counters() const {
  const auto get = [](const std::atomic<std::uint64_t>& n) {
    return n.load(std::memory_order_relaxed);
  };
  const StoreCounters store = store_->counters();
  const CatalogTotals totals = catalog_->totals();
  EngineCounters c;
  c.read_bytes = get(counts_.read_bytes);
  c.written_bytes = get(counts_.written_bytes);
  c.page_hits = get(counts_.page_hits);
  c.page_misses = get(counts_.page_misses);
  c.buffer_hit_pages = get(counts_.buffer_hit_pages);
  c.dirty_bytes = get(dirty_bytes_);
  c.dirty_bytes_max = options_.write_buffer_bytes;
  c.cache_bytes = pages_.used_bytes();
  c.cache_bytes_max = pages_.size_bytes();
  c.log_position = log_->last().value;
  c.log_durable = log_->durable().value;
  c.log_held_bytes = log_->held_bytes();
  c.log_capacity_bytes = log_->capacity_bytes();
  c.syncs = get(counts_.syncs);
  c.flushes = get(counts_.flushes);
  c.checkpoints = get(counts_.checkpoints);
  c.inline_bytes = get(counts_.inline_bytes);
  c.segment_count = store.segment_count;
  c.segment_bytes = store.files_bytes;
  c.segment_written_bytes = store.written_bytes;
  c.appended_bytes = store.appended_bytes;
  c.cleaned_segments = get(counts_.cleaned_segments);
  c.moved_bytes = store.moved_bytes;
  c.live_bytes = totals.live_bytes;
  c.inodes = totals.inodes;
  c.held_inodes = live_.retained_count();
  {
    std::lock_guard lock(orphans_mutex_);
    c.orphans = orphans_.size();
  }
  c.ballast_bytes = ballast_.has_bytes() ? ballast_.size_bytes() : 0;
  c.corrupt_pages = store.corrupt_pages;
  c.errors = get(counts_.errors);
  c.copied_bytes = store.copied_bytes;
  c.dirty_age_ns = dirty_age_ns();
  c.leases_lost = get(counts_.leases_lost);
  admin_->count_scrub(c);
  if (cluster_) count_cluster(c);
  return c;
}

}  // namespace kvsyncfs
