// Copies of segments whose holder is gone are made anew, those with the fewest left first.
//
// The first holder that lives sees to a segment: it sends the batches to another node as they are,
// and then says in the catalog who has it now. A copy that was not finished is nobody's and goes
// with the next start of that node. A node that is drained counts as gone, but its copies are there
// to be read; one whose absence is planned counts as there. ARCHITECTURE.md, "Replicate, then
// commit".
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_impl.h"
#include "engine/format/peer_message.h"
#include "engine/sync/copy_keeper.h"
#include "engine/sync/waiting_call.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kTickNs = 1'000'000'000;
constexpr std::uint64_t kRetryNs = 30'000'000'000;  // others have their turn before
}  // namespace

/// As the operator wants it of nodes that there are. The last word holds while etcd is silent.
void EngineImpl::refresh_orders() {
  const std::uint64_t now_ns = clock_.boot_ns();
  if (now_ns < cluster_->orders_due_ns) return;
  cluster_->orders_due_ns = now_ns + kTickNs;
  const std::uint64_t until_ns = now_ns + options_.timeout_ns / 3;
  const auto orders = cluster_->order_store.read(until_ns);
  if (!orders) return;
  OrdersById by_id;
  by_id.heal_rate_bytes = orders->heal_rate_bytes;
  if (!orders->draining.empty() || !orders->maintained.empty() || !orders->replaced.empty()) {
    const auto nodes = cluster_->records.nodes(until_ns);
    if (!nodes) return;
    for (const auto& [name, record] : *nodes) {
      if (orders->draining.contains(name)) by_id.draining.insert(record.id);
      if (orders->maintained.contains(name)) by_id.maintained.insert(record.id);
      const auto replaced = orders->replaced.find(name);
      if (replaced != orders->replaced.end()) by_id.replaced[record.id] = {replaced->second};
    }
  }
  cluster_->segments.set_draining(by_id.draining);
  std::lock_guard lock(cluster_->orders_mutex);
  cluster_->orders = std::move(by_id);
}

/// Who is away, and for how long already.
void EngineImpl::note_absences(OrdersById& orders) {
  const std::uint64_t now_ns = clock_.boot_ns();
  auto& away = cluster_->away_since_ns;
  for (const auto& [node, session] : catalog_->sessions()) {
    if (session.lives()) {
      away.erase(node);
      continue;
    }
    std::uint64_t& since_ns = away.try_emplace(node, now_ns).first->second;
    if (is_removed(node)) {
      orders.given_up.insert(node);
      continue;
    }
    // The delay begins when the absence is not planned any more.
    if (orders.maintained.contains(node)) {
      since_ns = now_ns;
      continue;
    }
    const auto replaced = orders.replaced.find(node);
    if ((replaced != orders.replaced.end() && replaced->second == session.session) ||
        now_ns - since_ns >= options_.heal_delay_ns)
      orders.given_up.insert(node);
  }
}

/// What there is to do for one segment; nothing: all its holders are there, another node sees to
/// it, or it cannot be helped now.
std::optional<HealJob> EngineImpl::heal_job(SegmentId segment, const SegmentRecord& record,
                                            const OrdersById& orders) {
  const NodeId self = cluster_->seams.node;
  const std::uint64_t now_ns = clock_.boot_ns();
  HealJob job;
  job.segment = job.result.segment = segment;
  std::optional<NodeId> first, first_leaving;
  std::vector<NodeId> leaving;
  std::size_t living = 0;  // of those that stay
  for (const NodeId holder : record.holders) {
    if (orders.given_up.contains(holder)) continue;
    const bool is_away = cluster_->away_since_ns.contains(holder);
    if (!is_away) ++job.copies;
    if (orders.draining.contains(holder)) {
      leaving.push_back(holder);
      if (!is_away && !first_leaving) first_leaving = holder;
      continue;
    }
    job.result.holders.push_back(holder);
    if (!is_away) ++living;
    if (!is_away && !first) first = holder;
  }
  const std::size_t stay = job.result.holders.size();
  if (stay == record.holders.size() && stay >= cluster_->seams.replicas) return std::nullopt;
  job.is_needed = stay < cluster_->seams.replicas;
  const std::size_t known = stay + leaving.size();
  if (known < record.holders.size() || known < cluster_->seams.replicas) ++cluster_->at_risk;
  // A copy that leaves goes only when enough nodes that live have one.
  if (living + (job.is_needed ? 1 : 0) < cluster_->seams.replicas)
    job.result.holders.insert(job.result.holders.end(), leaving.begin(), leaving.end());
  if (!job.is_needed && job.result.holders.size() == record.holders.size()) return std::nullopt;
  if (!first) first = first_leaving;
  // Who still appends to it has to end that.
  if (record.state == SegmentState::kOpen && !cluster_->away_since_ns.contains(record.owner))
    first = record.owner;
  if (first != self) return std::nullopt;
  const auto not_before = cluster_->heal_not_before_ns.find(segment);
  if (not_before != cluster_->heal_not_before_ns.end() && now_ns < not_before->second)
    return std::nullopt;
  return job;
}

/// Who owns a segment after the job: who did, if it stays.
void EngineImpl::choose_owner(HealJob& job, NodeId owner) const {
  const auto& holders = job.result.holders;
  const auto stays = [&](NodeId node) {
    return std::find(holders.begin(), holders.end(), node) != holders.end();
  };
  const NodeId self = cluster_->seams.node;
  job.result.owner = stays(owner) ? owner : stays(self) ? self : holders.front();
}

std::optional<HealJob> EngineImpl::next_heal_job() {
  refresh_orders();
  OrdersById orders;
  {
    std::lock_guard lock(cluster_->orders_mutex);
    orders = cluster_->orders;
  }
  note_absences(orders);
  std::optional<HealJob> riskiest;
  NodeId owner;
  const auto segments = catalog_->segments();
  if (!segments) return std::nullopt;
  cluster_->at_risk = 0;
  for (const auto& [id, record] : *segments) {
    auto job = heal_job(id, record, orders);
    if (!job || (riskiest && job->copies >= riskiest->copies)) continue;
    riskiest = std::move(job);
    owner = record.owner;
  }
  if (!riskiest) return std::nullopt;
  if (riskiest->is_needed) {
    riskiest->target =
        cluster_->segments.place_copy(riskiest->segment, riskiest->result.holders);
    if (riskiest->target.value == 0) {  // degraded() tells
      cluster_->heal_not_before_ns[riskiest->segment] = clock_.boot_ns() + kRetryNs / 10;
      return std::nullopt;
    }
    riskiest->result.holders.push_back(riskiest->target);
  }
  choose_owner(*riskiest, owner);
  return riskiest;
}

/// The next batch of the job: this node's copy, or another holder's where that is bad.
Result<AlignedBuffer> EngineImpl::read_to_heal(const HealJob& job) {
  auto own = store_->read_batch(job.segment, job.page);
  if (own) return own;
  KVSYNCFS_ASSIGN(const SegmentRecord record, catalog_->segment(job.segment));
  CopyKeeper copies(&cluster_->seams.transport, clock_, *store_, cluster_->seams.node,
                    options_.timeout_ns / 3,
                    [this](SegmentId id) { return cluster_->segments.held_length(id); });
  auto read = copies.read_from_others(job.segment, job.page, record.holders);
  return read ? std::move(read) : std::move(own);
}

/// One batch of the job, or its end.
Status EngineImpl::copy_batch(HealJob& job) {
  if (job.end == 0) {
    KVSYNCFS_TRY(store_->finish(job.segment));
    KVSYNCFS_ASSIGN(SegmentRecord record, catalog_->segment(job.segment));
    if (record.state == SegmentState::kOpen) {
      // Its owner is gone, and nothing of that life can be committed any more.
      KVSYNCFS_ASSIGN(record.length, referenced_end(job.segment));
      if (record.length > 0) {  // else there may be no file
        KVSYNCFS_ASSIGN(record.length, store_->batch_end(job.segment, record.length));
      }
      KVSYNCFS_TRY(commit_one(SealSegmentCommand{job.segment, record.length}));
    }
    job.end = record.length / kPageSize;
    if (job.target.value == 0) job.page = job.end;
  }
  if (job.page < job.end) {
    KVSYNCFS_ASSIGN(AlignedBuffer bytes, read_to_heal(job));
    const auto batch = std::make_shared<AlignedBuffer>(std::move(bytes));
    Call call;
    call.kind = static_cast<std::uint16_t>(PeerRequest::kReplicate);
    call.head = encode(BatchPlace{job.segment, job.page});
    call.body = {batch->bytes(), batch};
    call.deadline_ns = clock_.boot_ns() + options_.timeout_ns / 3;
    WaitingCall waiting(cluster_->seams.transport, job.target, std::move(call));
    if (const Result<Reply>& reply = waiting.wait(); !reply) return reply.error();
    job.page += batch->bytes().size() / kPageSize;
    cluster_->healed_bytes += batch->bytes().size();
  }
  if (job.page < job.end) return {};
  KVSYNCFS_TRY(commit_one(job.result));
  return {};
}

std::uint64_t EngineImpl::heal_step() {
  auto& job = cluster_->heal;
  if (closed_ || failed_ || !serving_ || cluster_->session.is_out())
    return clock_.boot_ns() + kTickNs;
  if (!job) job = next_heal_job();
  if (!job) return clock_.boot_ns() + kTickNs;
  const std::uint64_t before = cluster_->healed_bytes;
  const std::uint64_t begun_ns = clock_.boot_ns();
  const Status copied = copy_batch(*job);
  if (!copied)
    options_.warn(fmt::format("segment {} gets no new copy at node {} yet: {}", job->segment.value,
                              job->target.value, describe(copied.error())));
  if (!copied)
    cluster_->heal_not_before_ns[job->segment] = clock_.boot_ns() + kRetryNs;
  else if (job->page >= job->end)
    cluster_->heal_not_before_ns.erase(job->segment);
  if (!copied || job->page >= job->end) job.reset();
  if (!copied) return clock_.boot_ns() + kTickNs;
  const std::uint64_t bytes = cluster_->healed_bytes - before;
  std::lock_guard lock(cluster_->orders_mutex);
  return begun_ns +
         bytes * 1'000'000'000 / cluster_->orders.heal_rate_bytes.value_or(kHealRateBytes);
}

}  // namespace kvsyncfs
