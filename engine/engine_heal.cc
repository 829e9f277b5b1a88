// Copies of segments whose holder is gone are made anew, those with the fewest left first.
//
// The first holder that lives sees to a segment: it sends the batches to another node as they are,
// and then says in the catalog who has it now. A copy that was not finished is nobody's and goes
// with the next start of that node. ARCHITECTURE.md, "Replicate, then commit".
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_impl.h"
#include "engine/format/peer_message.h"
#include "engine/sync/waiting_call.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kTickNs = 1'000'000'000;
constexpr std::uint64_t kRetryNs = 30'000'000'000;  // others have their turn before
constexpr std::uint64_t kRateBytes = 64u << 20;     // a second, so that users' work goes on
}  // namespace

/// What there is to do for one segment; nothing: all its holders are there, another node sees to
/// it, or it cannot be helped now.
std::optional<HealJob> EngineImpl::heal_job(SegmentId segment, const SegmentRecord& record) {
  const NodeId self = cluster_->seams.node;
  const std::uint64_t now_ns = clock_.boot_ns();
  HealJob job;
  job.segment = job.result.segment = segment;
  std::optional<NodeId> first;
  for (const NodeId holder : record.holders) {
    const auto away = cluster_->away_since_ns.find(holder);
    const bool is_gone = away != cluster_->away_since_ns.end() &&
                         (now_ns - away->second >= options_.heal_delay_ns || is_removed(holder));
    if (is_gone) continue;
    job.result.holders.push_back(holder);
    if (away != cluster_->away_since_ns.end()) continue;
    ++job.copies;
    if (!first) first = holder;
  }
  const std::size_t stay = job.result.holders.size();
  if (stay == record.holders.size() && stay >= cluster_->seams.replicas) return std::nullopt;
  // Who still appends to it has to end that.
  if (record.state == SegmentState::kOpen && !cluster_->away_since_ns.contains(record.owner))
    first = record.owner;
  ++cluster_->at_risk;
  if (first != self) return std::nullopt;
  const auto not_before = cluster_->heal_not_before_ns.find(segment);
  if (not_before != cluster_->heal_not_before_ns.end() && now_ns < not_before->second)
    return std::nullopt;
  const bool owner_stays = std::find(job.result.holders.begin(), job.result.holders.end(),
                                     record.owner) != job.result.holders.end();
  job.result.owner = owner_stays ? record.owner : self;
  return job;
}

std::optional<HealJob> EngineImpl::next_heal_job() {
  const std::uint64_t now_ns = clock_.boot_ns();
  for (const auto& [node, session] : catalog_->sessions()) {
    if (session.lives())
      cluster_->away_since_ns.erase(node);
    else
      cluster_->away_since_ns.try_emplace(node, now_ns);
  }
  std::optional<HealJob> riskiest;
  const auto segments = catalog_->segments();
  if (!segments) return std::nullopt;
  cluster_->at_risk = 0;
  for (const auto& [id, record] : *segments) {
    auto job = heal_job(id, record);
    if (job && (!riskiest || job->copies < riskiest->copies)) riskiest = std::move(job);
  }
  if (!riskiest) return std::nullopt;
  riskiest->target = cluster_->segments.place_copy(cluster_->seams.node, riskiest->result.holders);
  if (riskiest->target.value == 0) {  // degraded() tells
    cluster_->heal_not_before_ns[riskiest->segment] = now_ns + kRetryNs / 10;
    return std::nullopt;
  }
  riskiest->result.holders.push_back(riskiest->target);
  return riskiest;
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
  }
  if (job.page < job.end) {
    KVSYNCFS_ASSIGN(AlignedBuffer bytes, store_->read_batch(job.segment, job.page));
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
  if (closed_ || failed_ || !serving_) return clock_.boot_ns() + kTickNs;
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
  return begun_ns + bytes * 1'000'000'000 / kRateBytes;
}

}  // namespace kvsyncfs
