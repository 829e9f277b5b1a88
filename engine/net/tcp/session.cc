#include "engine/net/tcp/session.h"

#include <algorithm>
#include <utility>

namespace kvsyncfs {
namespace {

OutFrame error_frame(std::uint64_t request, const Error& error) {
  OutFrame frame;
  frame.type = FrameType::kReply;
  frame.request = request;
  frame.kind = to_wire(error.code);
  frame.head = error_head(error);
  return frame;
}

OutFrame answer_frame(std::uint64_t request, Result<Answer> answer) {
  if (!answer) return error_frame(request, answer.error());
  if (answer->head.size() > kFrameHeadSizeMax || answer->body.bytes.size() > kFrameBodySizeMax)
    return error_frame(request, Error(Code::kTooBig, "the answer is too big"));
  OutFrame frame;
  frame.type = FrameType::kReply;
  frame.request = request;
  frame.head = std::move(answer->head);
  frame.body = std::move(answer->body);
  return frame;
}

}  // namespace

/// Credits of one request, given back when its answer is sent or dropped.
class Session::Hold {
 public:
  Hold(std::shared_ptr<Credits> credits, std::uint64_t bytes)
      : credits_(std::move(credits)), bytes_(bytes) {
    credits_->calls += 1;
    credits_->bytes += bytes_;
  }
  ~Hold() {
    credits_->calls -= 1;
    credits_->bytes -= bytes_;
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  const std::shared_ptr<Credits> credits_;  // shared: the session may be gone
  const std::uint64_t bytes_;
};

Session::Session(Shared& shared, SessionHost& host, boost::asio::ip::tcp::socket socket,
                 std::string address)
    : shared_(shared),
      host_(host),
      address_(std::move(address)),
      connection_(std::make_shared<Connection>(std::move(socket), shared.regions, shared.tls.get(),
                                               Side::kAcceptor, *this)),
      handshake_(std::in_place, shared.self, shared.make_nonce()),
      handshake_end_ns_(shared.clock.boot_ns() + shared.options.handshake_ns),
      // The dialer sends pings and sees silence first; this side lets go a little later.
      heartbeat_(shared.options.heartbeat_ns, 2 * shared.options.silence_ns) {}

void Session::start() {
  shared_.schedule(handshake_end_ns_);
  const auto connection = connection_;  // what comes in may end it
  connection->start();
}

Result<MutableBytes> Session::begin_frame(const FrameHeader& header) {
  if (handshake_) return MutableBytes{};
  if (header.type == FrameType::kPing) return MutableBytes{};
  if (header.type != FrameType::kRequest && header.type != FrameType::kRead)
    return Error(Code::kCorrupt, "a message that only an acceptor sends");
  if (header.request <= last_request_) return Error(Code::kCorrupt, "an old request");
  last_request_ = header.request;
  KVSYNCFS_TRY(take_credits(header));
  body_ = AlignedBuffer(header.body_size);
  return body_.bytes();
}

Status Session::take_credits(const FrameHeader& header) {
  const std::uint64_t bytes = std::uint64_t{header.head_size} + header.body_size;
  const std::uint64_t single = kFrameHeadSizeMax + kFrameBodySizeMax;
  const Welcome& grants = shared_.self.grants;
  if (credits_->calls >= 2 * std::uint64_t{grants.calls_max} ||
      credits_->bytes + bytes > 2 * std::max<std::uint64_t>(grants.bytes_max, single))
    return Error(Code::kCorrupt, "more requests than were granted");
  hold_ = std::make_shared<Hold>(credits_, bytes);
  return {};
}

Status Session::take_frame(const FrameHeader& header, std::string head, std::uint16_t code) {
  if (handshake_) return on_handshake(header, head);
  if (header.type == FrameType::kPing) {
    OutFrame pong;
    pong.type = FrameType::kPong;
    connection_->send(std::move(pong));
    return {};
  }
  count(counts_->messages_received);
  if (header.type == FrameType::kRead) return take_read(header, head);
  if (code != 0) {  // the asker's body went away while it was sent
    OutFrame frame = error_frame(header.request, from_wire(code));
    frame.token = std::move(hold_);
    connection_->send(std::move(frame));
    return {};
  }
  take_request(header, std::move(head));
  return {};
}

void Session::take_request(const FrameHeader& header, std::string head) {
  Incoming incoming;
  incoming.peer = peer_.node;
  incoming.incarnation = peer_.incarnation;
  incoming.kind = header.kind;
  incoming.head = std::move(head);
  incoming.body = std::move(body_);
  incoming.deadline_ns = shared_.clock.boot_ns() + std::uint64_t{header.timeout_us} * 1000;
  Responder responder([connection = std::weak_ptr(connection_), counts = counts_,
                       request = header.request,
                       hold = std::exchange(hold_, nullptr)](Result<Answer> answer) {
    const auto open = connection.lock();
    if (!open) return;
    OutFrame frame = answer_frame(request, std::move(answer));
    frame.token = hold;
    open->send(std::move(frame));
  });
  if (shared_.handlers.on_request) {
    shared_.handlers.on_request(std::move(incoming), std::move(responder));
  } else {
    responder.reply(Code::kUnsupported);
  }
}

Status Session::take_read(const FrameHeader& header, std::string_view head) {
  KVSYNCFS_ASSIGN(const ReadRange range, decode_read_range(head));
  OutFrame frame;
  if (const Status good = shared_.regions.check({range.key}, range.offset, range.length); good) {
    frame.type = FrameType::kReply;
    frame.request = header.request;
    frame.region = range;
  } else {
    frame = error_frame(header.request, good.error());
  }
  frame.token = std::move(hold_);
  connection_->send(std::move(frame));
  return {};
}

Status Session::on_handshake(const FrameHeader& header, std::string_view head) {
  was_refused_ = header.type == FrameType::kRefuse;
  auto step = handshake_->on_frame(header, head);
  if (!step) return step.error();
  if (step->is_done) {
    peer_ = handshake_->peer();
    counts_ = shared_.counts_of(peer_.node);
    if (!counts_) return Error(Code::kBusy, "too many nodes");
    KVSYNCFS_TRY(host_.admit(*this));
  }
  OutFrame answer;
  answer.type = *step->answer;
  answer.head = std::move(step->head);
  if (step->is_done) {
    handshake_.reset();
    handshake_end_ns_ = kNever;
    connection_->set_peer(counts_);
    heartbeat_.start(shared_.clock.boot_ns());
    shared_.schedule(heartbeat_.due_ns());
  }
  connection_->send(std::move(answer));
  return {};
}

std::optional<OutFrame> Session::last_words(const Error& why) {
  if (!handshake_ || was_refused_) return std::nullopt;
  return refuse_frame(why);
}

void Session::refuse(const Error& why) {
  if (!is_open()) return;
  connection_->send(refuse_frame(why));
  connection_->close();
  on_closed(why);
}

void Session::on_closed(const Error& why) {
  const auto keep = shared_from_this();
  const bool has_failed_tls = connection_->has_failed_tls();
  connection_.reset();
  hold_.reset();
  if (why.code == Code::kCorrupt) count(shared_.counts.bad_frames);
  // Strangers who merely went away are not worth a word.
  if (handshake_ && why.code != Code::kDisconnected) {
    if (has_failed_tls)
      count(shared_.counts.refused_tls);
    else
      count_refusal(shared_.counts, why.code);
    if (shared_.handlers.on_refused) shared_.handlers.on_refused(address_, why);
  } else if (why.code == Code::kCorrupt && shared_.handlers.on_refused) {
    shared_.handlers.on_refused(address_, why);
  }
  host_.on_ended();
}

void Session::close() {
  if (!is_open()) return;
  connection_->close();
  connection_.reset();
  host_.on_ended();
}

std::uint64_t Session::on_time(std::uint64_t now_ns) {
  if (!is_open()) return kNever;
  if (handshake_) {
    if (now_ns < handshake_end_ns_) return handshake_end_ns_;
    count(shared_.counts.handshake_timeouts);
    refuse(Error(Code::kTimeout, "the handshake took too long"));
    return kNever;
  }
  const bool is_silent = heartbeat_.on_time(now_ns).is_silent;
  if (is_silent) close();
  return is_silent ? kNever : heartbeat_.due_ns();
}

}  // namespace kvsyncfs
