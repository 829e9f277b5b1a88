#include "engine/sync/page_puller.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "engine/format/peer_message.h"
#include "engine/format/segment_layout.h"
#include "engine/sync/waiting_call.h"

namespace kvsyncfs {

PagePuller::PagePuller(Transport& transport, Clock& clock, std::uint64_t volume_tag,
                       std::uint64_t timeout_ns)
    : transport_(transport), clock_(clock), volume_tag_(volume_tag), timeout_ns_(timeout_ns) {}

std::vector<NodeId> PagePuller::in_order(std::span<const NodeId> holders) const {
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
  std::vector<NodeId> order;
  for (const Rank& rank : ranks) order.push_back(std::get<NodeId>(rank));
  return order;
}

Result<std::size_t> PagePuller::pull(SegmentId segment, std::uint64_t page, MutableBytes out,
                                     std::span<const NodeId> holders) {
  const std::uint64_t deadline_ns = clock_.boot_ns() + timeout_ns_;
  Error why(Code::kUnreachable, fmt::format("segment {}: no holder is known", segment.value));
  for (const NodeId holder : in_order(holders)) {
    auto pulled = pull_from(holder, segment, page, out, deadline_ns);
    if (pulled) return pulled;
    // What one of them says of the pages tells more than that another one cannot be reached.
    const bool said = why.code == Code::kCorrupt || why.code == Code::kNotFound;
    if (!said || pulled.error().code == Code::kCorrupt)
      why =
          Error(pulled.error().code, fmt::format("segment {} page {} at node {}: {}", segment.value,
                                                 page, holder.value, pulled.error().detail));
  }
  return why;
}

Result<std::size_t> PagePuller::pull_from(NodeId holder, SegmentId segment, std::uint64_t page,
                                          MutableBytes out, std::uint64_t deadline_ns) {
  const std::size_t wanted = std::min<std::size_t>(out.size() / kPageSize, kPagesPerBatchMax);
  Call call;
  call.kind = static_cast<std::uint16_t>(PeerRequest::kReadPages);
  call.head = encode(PagesWanted{segment, page, static_cast<std::uint32_t>(wanted)});
  call.reply_body = out.first(wanted * kPageSize);
  call.deadline_ns = deadline_ns;
  WaitingCall waiting(transport_, holder, std::move(call));
  const Result<Reply>& reply = waiting.wait();
  if (!reply) return reply.error();
  KVSYNCFS_ASSIGN(const auto checksums, decode_page_checksums(reply->head));
  if (checksums.size() > wanted || reply->body_size != checksums.size() * kPageSize)
    return Error(Code::kCorrupt, "the answer has another size than it says");
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    const Bytes bytes = out.subspan(i * kPageSize, kPageSize);
    if (page_checksum({volume_tag_, segment, page + i}, bytes) != checksums[i])
      return Error(Code::kCorrupt, "bad checksum");
  }
  return checksums.size();
}

}  // namespace kvsyncfs
