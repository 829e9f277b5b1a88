#include "engine/sync/page_puller.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <tuple>

#include "engine/base/kept_buffers.h"
#include "engine/env/deadline.h"
#include "engine/format/peer_message.h"
#include "engine/format/segment_layout.h"
#include "engine/policy/hedge.h"

namespace kvsyncfs {

/// Shared with the calls: one that lost may be answered when nobody waits any more, and writes into
/// a buffer of its own.
struct PagePuller::Race {
  struct Answered {
    NodeId holder;
    Result<Reply> reply;
    std::shared_ptr<AlignedBuffer> pages;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Answered> answered;
  std::size_t under_way = 0;
};

PagePuller::PagePuller(Transport& transport, Clock& clock, std::uint64_t volume_tag,
                       std::uint64_t timeout_ns)
    : transport_(transport), clock_(clock), volume_tag_(volume_tag), timeout_ns_(timeout_ns) {}

std::vector<PagePuller::Candidate> PagePuller::in_order(std::span<const NodeId> holders) const {
  using Rank = std::tuple<bool, std::uint64_t, std::uint64_t, NodeId>;
  const auto peers = transport_.peers();
  std::vector<Rank> ranks;
  for (const NodeId holder : holders) {
    const auto peer = std::find_if(peers.begin(), peers.end(),
                                   [&](const PeerStatus& p) { return p.node == holder; });
    if (peer == peers.end()) continue;
    ranks.emplace_back(!peer->is_up, peer->queued_calls + peer->outstanding_calls,
                       peer->round_trip_ns, holder);
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<Candidate> order;
  for (const auto& [is_down, calls, trip_ns, node] : ranks) order.push_back({node, trip_ns, calls});
  return order;
}

Result<std::size_t> PagePuller::pull(SegmentId segment, std::uint64_t page, MutableBytes out,
                                     std::span<const NodeId> holders) {
  const Wanted wanted{segment, page,
                      std::min<std::size_t>(out.size() / kPageSize, kPagesPerBatchMax),
                      clock_.boot_ns() + timeout_ns_};
  const auto race = std::make_shared<Race>();
  Error why(Code::kUnreachable, fmt::format("segment {}: no holder is known", segment.value));
  const auto order = in_order(holders);
  auto next = order.begin();
  std::unique_lock lock(race->mutex);
  for (;;) {
    if (race->answered.empty() && next != order.end()) {
      const Candidate& asked = *next++;
      lock.unlock();
      ask(race, wanted, asked.node);
      lock.lock();
      const Deadline hedge(
          clock_, hedge_delay_ns(asked.round_trip_ns, wanted.count * kPageSize, asked.outstanding));
      hedge.wait(race->changed, lock, [&] { return !race->answered.empty(); });
      if (race->answered.empty() && next != order.end()) continue;
    }
    // The transport ends every call at its deadline, so that this wait needs no end of its own.
    race->changed.wait(lock, [&] { return !race->answered.empty() || race->under_way == 0; });
    if (race->answered.empty() && next == order.end()) return why;
    while (!race->answered.empty()) {
      const Race::Answered answered = std::move(race->answered.front());
      race->answered.pop_front();
      lock.unlock();
      const auto pages = answered.pages->bytes();
      const auto count = answered.reply ? good_pages(wanted, *answered.reply, pages)
                                        : Result<std::size_t>(answered.reply.error());
      if (count) std::memcpy(out.data(), pages.data(), *count * kPageSize);
      if (count) return count;
      lock.lock();
      // What one of them says of the pages tells more than that another one cannot be reached.
      const bool said = why.code == Code::kCorrupt || why.code == Code::kNotFound;
      if (!said || count.error().code == Code::kCorrupt)
        why = Error(count.error().code,
                    fmt::format("segment {} page {} at node {}: {}", segment.value, page,
                                answered.holder.value, count.error().detail));
    }
  }
}

void PagePuller::ask(const std::shared_ptr<Race>& race, const Wanted& wanted, NodeId holder) {
  const auto pages = take_kept_buffer(wanted.count * kPageSize);
  Call call;
  call.kind = static_cast<std::uint16_t>(PeerRequest::kReadPages);
  call.head =
      encode(PagesWanted{wanted.segment, wanted.page, static_cast<std::uint32_t>(wanted.count)});
  call.reply_body = pages->bytes().first(wanted.count * kPageSize);
  call.deadline_ns = wanted.deadline_ns;
  const auto note = [race, holder, pages](Result<Reply> reply) {
    std::lock_guard lock(race->mutex);
    --race->under_way;
    race->answered.push_back({holder, std::move(reply), pages});
    race->changed.notify_all();
  };
  call.done = note;
  {
    std::lock_guard lock(race->mutex);
    ++race->under_way;
  }
  if (const Status accepted = transport_.call(holder, std::move(call)); !accepted)
    note(accepted.error());
}

Result<std::size_t> PagePuller::good_pages(const Wanted& wanted, const Reply& reply,
                                           Bytes pages) const {
  KVSYNCFS_ASSIGN(const auto checksums, decode_page_checksums(reply.head));
  if (checksums.size() > wanted.count || reply.body_size != checksums.size() * kPageSize)
    return Error(Code::kCorrupt, "the answer has another size than it says");
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    const Bytes bytes = pages.subspan(i * kPageSize, kPageSize);
    if (page_checksum({volume_tag_, wanted.segment, wanted.page + i}, bytes) != checksums[i])
      return Error(Code::kCorrupt, "bad checksum");
  }
  return checksums.size();
}

}  // namespace kvsyncfs
