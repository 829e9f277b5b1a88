#include "engine/net/tcp/sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/checksum.h"
#include "engine/net/tcp/handshake.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kStageSizeMax = 256u << 10;  // of one sendmsg; fits a second level cache
constexpr std::size_t kStagePartsMax = 96;
constexpr int kRoundsMax = 32;  // of one turn: up to 8 MiB

}  // namespace

OutFrame refuse_frame(const Error& why) {
  OutFrame frame;
  frame.type = FrameType::kRefuse;
  frame.kind = to_wire(why.code);
  frame.head = error_head(why);
  return frame;
}

void Sender::push(OutFrame frame) {
  Sending sending;
  sending.body_size =
      frame.region ? frame.region->length : static_cast<std::uint32_t>(frame.body.bytes.size());
  FrameHeader header;
  header.type = frame.type;
  header.kind = frame.kind;
  header.request = frame.request;
  header.timeout_us = frame.timeout_us;
  header.head_size = static_cast<std::uint32_t>(frame.head.size());
  header.body_size = sending.body_size;
  sending.frame = std::move(frame);
  if (counts_) {  // now, not when it is sent: a reply may be here before sendmsg() has returned
    if (header.type >= FrameType::kRequest) count(counts_->messages_sent);
    count(counts_->bytes_sent, frame_size(header));
  }
  std::lock_guard lock(mutex_);
  header.sequence = ++sequence_;
  sending.prefix = encode(header);
  sending.prefix += sending.frame.head;
  queue_.push_back(std::move(sending));
}

bool Sender::take_turn() {
  std::lock_guard lock(mutex_);
  if (is_turn_taken_ || queue_.empty()) return false;
  is_turn_taken_ = true;
  return true;
}

bool Sender::fetch() {
  std::lock_guard lock(mutex_);
  if (queue_.empty()) {
    if (sending_.empty()) is_turn_taken_ = false;
    return !sending_.empty();
  }
  for (Sending& sending : queue_) sending_.push_back(std::move(sending));
  queue_.clear();
  return true;
}

void Sender::stage(const void* bytes, std::size_t size) {
  staged_.push_back({const_cast<void*>(bytes), size});
  staged_bytes_ += size;
  stream_staged_ += size;
}

bool Sender::stage_body(Sending& sending) {
  while (sending.made < sending.body_size) {
    std::size_t size =
        std::min<std::size_t>(sending.body_size - sending.made,
                              kStageSizeMax - std::min<std::size_t>(staged_bytes_, kStageSizeMax));
    const OutFrame& frame = sending.frame;
    Bytes bytes;
    if (frame.region) {
      if (bounce_.size() == 0) bounce_ = AlignedBuffer(kStageSizeMax);
      size = std::min(size, bounce_.size() - bounce_used_);
      const MutableBytes copy = bounce_.bytes().subspan(bounce_used_, size);
      const Status copied =
          regions_.copy({frame.region->key}, frame.region->offset + sending.made, copy);
      if (!copied) {  // the header has promised the bytes: zeros, and the trailer says so
        std::memset(copy.data(), 0, copy.size());
        sending.code = to_wire(copied.error().code);
      }
      bounce_used_ += size;
      bytes = copy;
    } else {
      bytes = frame.body.bytes.subspan(sending.made, size);
    }
    if (size == 0) return false;
    sending.checksum = crc32c(bytes, sending.checksum);
    sending.made += static_cast<std::uint32_t>(size);
    stage(bytes.data(), size);
  }
  return true;
}

void Sender::stage_frames() {
  while (next_ < sending_.size() && staged_bytes_ < kStageSizeMax &&
         staged_.size() < kStagePartsMax) {
    Sending& sending = sending_[next_];
    if (!sending.has_begun) {
      sending.has_begun = true;
      stage(sending.prefix.data(), sending.prefix.size());
      sending.checksum = crc32c(as_bytes(sending.frame.head));
    }
    if (!stage_body(sending)) return;
    if (sending.prefix.size() > kFrameHeaderSize || sending.body_size > 0) {
      sending.trailer_bytes = encode(make_trailer(sending.checksum, sending.code));
      stage(sending.trailer_bytes.data(), sending.trailer_bytes.size());
    }
    sending.end = stream_staged_;
    ++next_;
  }
}

void Sender::consume(std::size_t size) {
  stream_sent_ += size;
  staged_bytes_ -= size;
  while (size > 0) {
    iovec& first = staged_[first_staged_];
    const std::size_t part = std::min(size, first.iov_len);
    first.iov_base = static_cast<char*>(first.iov_base) + part;
    first.iov_len -= part;
    size -= part;
    if (first.iov_len == 0) ++first_staged_;
  }
  if (first_staged_ == staged_.size()) {
    staged_.clear();
    first_staged_ = 0;
    bounce_used_ = 0;
  }
  while (next_ > 0 && sending_.front().end <= stream_sent_) {
    sending_.pop_front();
    --next_;
  }
}

Sender::Outcome Sender::send(int socket, TlsStream* tls) {
  for (int round = 0; round < kRoundsMax; ++round) {
    if (!fetch()) return Outcome::kIdle;
    if (first_staged_ == 0 || first_staged_ == staged_.size()) stage_frames();
    msghdr message{};
    message.msg_iov = staged_.data() + first_staged_;
    message.msg_iovlen = staged_.size() - first_staged_;
    const ssize_t sent = tls != nullptr ? tls->send({message.msg_iov, message.msg_iovlen})
                                        : ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0)
      return errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kBlocked : Outcome::kBroken;
    consume(static_cast<std::size_t>(sent));
  }
  return Outcome::kMore;
}

void Sender::clear() {
  std::deque<Sending> dropped;  // outside of the lock: tokens run code
  std::lock_guard lock(mutex_);
  dropped.swap(queue_);
}

}  // namespace kvsyncfs
