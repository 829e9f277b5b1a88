#include "engine/sync/shipper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/kept_buffers.h"
#include "engine/format/peer_message.h"
#include "engine/sync/waiting_call.h"

namespace kvsyncfs {
namespace {

/// One copy of the batch for all holders: the transport may read it after the call has ended.
Payload gather(std::span<const Bytes> pieces) {
  std::size_t size = 0;
  for (const Bytes piece : pieces) size += piece.size();
  const auto buffer = take_kept_buffer(size);
  std::byte* at = buffer->data();
  for (const Bytes piece : pieces) at = std::copy(piece.begin(), piece.end(), at);
  return {buffer->bytes().first(size), buffer};
}

}  // namespace

std::function<Status()> Shipper::ship(SegmentId segment, std::uint64_t page,
                                      std::span<const Bytes> pieces,
                                      const std::vector<NodeId>& holders,
                                      std::function<void(NodeId, const Error&)> lost) {
  using Calls = std::vector<std::pair<NodeId, std::shared_ptr<WaitingCall>>>;
  if (holders.empty()) return [] { return Status{}; };
  const Payload batch = gather(pieces);
  Calls calls;
  for (const NodeId holder : holders) {
    Call call;
    call.kind = static_cast<std::uint16_t>(PeerRequest::kReplicate);
    call.head = encode(BatchPlace{segment, page});
    call.body = batch;
    call.deadline_ns = clock_.boot_ns() + timeout_ns_;
    calls.emplace_back(holder, std::make_shared<WaitingCall>(transport_, holder, std::move(call)));
  }
  return [calls = std::move(calls), segment, lost = std::move(lost)]() -> Status {
    Status status{};
    for (const auto& [holder, call] : calls) {
      const Result<Reply>& reply = call->wait();
      if (reply) continue;
      lost(holder, reply.error());
      status = Error(Code::kUnreachable, fmt::format("segment {} at node {}: {}", segment.value,
                                                     holder.value, describe(reply.error())));
    }
    return status;
  };
}

}  // namespace kvsyncfs
