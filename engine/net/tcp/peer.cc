#include "engine/net/tcp/peer.h"

#include <algorithm>
#include <limits>

namespace kvsyncfs {
namespace {

std::uint32_t timeout_us(std::uint64_t deadline_ns, std::uint64_t now_ns) {
  const std::uint64_t left_us = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1000 : 0;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(left_us, 1, std::numeric_limits<std::uint32_t>::max()));
}

OutFrame frame_of(const CallTable::Sendable& sendable, std::uint64_t now_ns) {
  PendingCall& call = *sendable.call;
  OutFrame frame;
  frame.request = sendable.number;
  frame.timeout_us = timeout_us(call.deadline_ns, now_ns);
  if (call.range) {
    frame.type = FrameType::kRead;
    frame.head = encode(*call.range);
  } else {
    frame.type = FrameType::kRequest;
    frame.kind = call.kind;
    frame.head = std::move(call.head);
    frame.body = std::move(call.body);
  }
  return frame;
}

}  // namespace

Peer::Peer(Shared& shared, NodeId node, std::shared_ptr<LivePeerCounts> counts)
    : shared_(shared),
      node_(node),
      counts_(std::move(counts)),
      table_(shared.budget, shared.options.queue_calls_max, shared.options.queue_bytes_max),
      heartbeat_(shared.options.heartbeat_ns, shared.options.silence_ns) {}

Status Peer::add(PendingCall call) {
  const std::uint64_t deadline_ns = call.deadline_ns;
  const bool is_read = call.range.has_value();
  if (deadline_ns <= shared_.clock.boot_ns()) return Code::kTimeout;
  std::shared_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kDown || state_ == State::kStopped) return Code::kUnreachable;
    if (const Status added = table_.add(std::move(call)); !added) {
      count(counts_->refused_busy);
      return added;
    }
    count(is_read ? counts_->reads : counts_->calls);
    connection = push_sendable();
  }
  if (connection) connection->flush();
  shared_.schedule(deadline_ns);
  return {};
}

void Peer::pump() {
  std::shared_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    connection = push_sendable();
  }
  if (connection) connection->flush();
}

std::shared_ptr<Connection> Peer::push_sendable() {
  if (!connection_) return nullptr;
  bool pushed = false;
  const std::uint64_t now_ns = shared_.clock.boot_ns();
  while (const auto sendable = table_.next()) {
    connection_->push(frame_of(*sendable, now_ns));
    pushed = true;
  }
  return pushed ? connection_ : nullptr;
}

Result<MutableBytes> Peer::begin_frame(const FrameHeader& header) {
  if (handshake_ || header.type == FrameType::kPong) return MutableBytes{};
  if (header.type != FrameType::kReply)
    return Error(Code::kCorrupt, "a message that only a dialer sends");
  std::lock_guard lock(mutex_);
  const PendingCall* call = table_.find_sent(header.request);
  if (call == nullptr) return Error(Code::kCorrupt, "an answer to nothing");
  if (call->range && header.body_size != (header.kind == 0 ? call->range->length : 0))
    return Error(Code::kCorrupt, "a read was answered with another size");
  receiving_ = header.request;
  return header.body_size <= call->out.size() ? call->out.first(header.body_size) : MutableBytes{};
}

Status Peer::take_frame(const FrameHeader& header, std::string head, std::uint16_t code) {
  if (handshake_) return on_handshake(header, head);
  if (header.type == FrameType::kReply) return take_reply(header, std::move(head), code);
  count(counts_->heartbeats);
  const std::uint64_t round_trip_ns = heartbeat_.on_answer(shared_.clock.boot_ns());
  std::lock_guard lock(mutex_);
  round_trip_ns_ = round_trip_ns;
  return {};
}

Status Peer::take_reply(const FrameHeader& header, std::string head, std::uint16_t code) {
  count(counts_->messages_received);
  count(counts_->round_trips);
  receiving_ = 0;
  std::optional<Finished> finished;
  std::shared_ptr<Connection> connection;
  bool released = false;
  {
    std::lock_guard lock(mutex_);
    const PendingCall* call = table_.find_sent(header.request);  // begin_frame found it
    Result<Reply> result = Error(Code::kRange);
    if (header.kind != 0) {
      result = refusal(header, head);
    } else if (code != 0) {
      result = Error(from_wire(code), "the region went away");
    } else if (header.body_size <= call->out.size()) {
      result = Reply{std::move(head), header.body_size};
    }
    finished = table_.answer(header.request, std::move(result));
    connection = push_sendable();
    released = table_.take_released();
  }
  if (connection) connection->flush();
  if (finished) {
    finished->done(std::move(finished->result));
  } else {
    count(counts_->late_replies);
  }
  if (released) shared_.pump_all();
  return {};
}

void Peer::expire(std::uint64_t now_ns) {
  std::vector<std::uint64_t> given_up;
  std::vector<Finished> finished;
  {
    std::lock_guard lock(mutex_);
    finished = table_.expire(now_ns, &given_up);
    const bool is_receiving =
        std::find(given_up.begin(), given_up.end(), receiving_) != given_up.end();
    if (is_receiving && connection_) connection_->drop_body();
  }
  count(counts_->timeouts, finished.size());
  finish(std::move(finished));
}

void Peer::finish(std::vector<Finished> finished) {
  for (Finished& one : finished) one.done(std::move(one.result));
  bool released = false;
  {
    std::lock_guard lock(mutex_);
    released = table_.take_released();
  }
  if (released) shared_.pump_all();
}

PeerStatus Peer::status() const {
  PeerStatus status;
  status.node = node_;
  status.counts = counts_->snapshot();
  std::lock_guard lock(mutex_);
  status.is_up = state_ == State::kUp;
  status.incarnation = incarnation_;
  status.round_trip_ns = round_trip_ns_;
  status.queued_calls = table_.waiting_count();
  status.queued_bytes = table_.waiting_bytes();
  status.outstanding_calls = table_.sent_count();
  status.outstanding_read_bytes = table_.outstanding_bytes();
  return status;
}

}  // namespace kvsyncfs
