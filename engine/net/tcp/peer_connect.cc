// Dialing, the handshake, the loss of a connection, and the back-off before the next try.
#include <algorithm>
#include <utility>

#include "engine/net/tcp/peer.h"

namespace kvsyncfs {

using boost::asio::ip::tcp;

void Peer::set_endpoints(Endpoints endpoints) {
  if (endpoints == endpoints_) return;
  endpoints_ = std::move(endpoints);
  next_endpoint_ = 0;
  failures_ = 0;
  drop_connection();
  std::vector<Finished> finished;
  bool was_up = false;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kStopped) return;
    was_up = std::exchange(state_, State::kDialing) == State::kUp;
    if (was_up) finished = table_.fail(Code::kDisconnected, Code::kUnreachable);
  }
  if (was_up) tell_down(Error(Code::kDisconnected, place() + ": it moved"), was_up);
  finish(std::move(finished));
  dial();
}

void Peer::dial() {
  retry_at_ns_ = kNever;
  handshake_end_ns_ = shared_.clock.boot_ns() + shared_.options.handshake_ns;
  shared_.schedule(handshake_end_ns_);
  dialing_ = std::make_shared<tcp::socket>(shared_.io);
  const tcp::endpoint& endpoint = endpoints_[next_endpoint_ % endpoints_.size()];
  dialing_->async_connect(endpoint,
                          [self = shared_from_this(), socket = dialing_,
                           number = ++dial_number_](const boost::system::error_code& error) {
                            if (number != self->dial_number_) return;
                            self->dialing_.reset();
                            if (error) {
                              self->become_down(Error(Code::kUnreachable, error.message()));
                            } else {
                              self->on_connected(std::move(*socket));
                            }
                          });
}

void Peer::dial_soon() {
  if (retry_at_ns_ == kNever) return;  // it is up, or being dialed
  retry_at_ns_ = shared_.clock.boot_ns();
  shared_.schedule(retry_at_ns_);
}

void Peer::on_connected(tcp::socket socket) {
  greeting_ = std::make_shared<Connection>(std::move(socket), shared_.regions, shared_.tls.get(),
                                           Side::kDialer, *this);
  handshake_.emplace(shared_.self, node_, shared_.make_nonce());
  was_refused_ = false;
  OutFrame hello;
  hello.type = FrameType::kHello;
  hello.head = handshake_->hello_head();
  greeting_->send(std::move(hello));
  const auto connection = greeting_;  // what comes in may end it
  connection->start();
}

Status Peer::on_handshake(const FrameHeader& header, std::string_view head) {
  was_refused_ = header.type == FrameType::kRefuse;
  auto step = handshake_->on_frame(header, head);
  if (!step) return step.error();
  if (step->answer) {
    OutFrame answer;
    answer.type = *step->answer;
    answer.head = std::move(step->head);
    greeting_->send(std::move(answer));
  }
  if (step->is_done) become_up();
  return {};
}

void Peer::become_up() {
  const PeerIdentity peer = handshake_->peer();
  greeting_->set_peer(counts_);
  handshake_end_ns_ = kNever;
  failures_ = 0;
  told_.reset();
  heartbeat_.start(shared_.clock.boot_ns());
  count(counts_->connects);
  {
    std::lock_guard lock(mutex_);
    state_ = State::kUp;
    incarnation_ = peer.incarnation;
    table_.set_credits(handshake_->welcome());
    connection_ = std::exchange(greeting_, nullptr);
  }
  handshake_.reset();
  shared_.schedule(heartbeat_.due_ns());
  if (shared_.handlers.on_peer) shared_.handlers.on_peer({node_, true, peer.incarnation, Error()});
  pump();
}

std::optional<OutFrame> Peer::last_words(const Error& why) {
  if (!handshake_ || was_refused_) return std::nullopt;
  return refuse_frame(why);
}

void Peer::on_closed(const Error& why) {
  if (why.code == Code::kCorrupt) count(shared_.counts.bad_frames);
  if (greeting_ && greeting_->has_failed_tls())
    count(shared_.counts.refused_tls);
  else if (handshake_)
    count_refusal(shared_.counts, why.code);
  become_down(why);
}

void Peer::drop_connection() {
  ++dial_number_;
  if (dialing_) {
    boost::system::error_code ignored;  // it is given up
    dialing_->close(ignored);
    dialing_.reset();
  }
  std::shared_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    connection = std::exchange(connection_, nullptr);
  }
  if (connection) connection->close();
  if (greeting_) greeting_->close();
  greeting_.reset();
  handshake_.reset();
  receiving_ = 0;
  handshake_end_ns_ = retry_at_ns_ = kNever;
}

void Peer::become_down(const Error& why) {
  drop_connection();
  std::vector<Finished> finished;
  bool was_up = false;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kStopped) return;
    was_up = std::exchange(state_, State::kDown) == State::kUp;
    finished =
        table_.fail(Error(Code::kDisconnected, why.detail), Error(Code::kUnreachable, why.detail));
  }
  if (was_up) count(counts_->disconnects);
  ++next_endpoint_;
  retry_at_ns_ = shared_.clock.boot_ns() + backoff_ns();
  shared_.schedule(retry_at_ns_);
  // Before the handshake is over nothing can have happened, so it was merely not reached.
  const bool unreached = !was_up && why.code == Code::kDisconnected;
  tell_down(Error(unreached ? Code::kUnreachable : why.code, place() + ": " + why.detail), was_up);
  finish(std::move(finished));
}

void Peer::tell_down(const Error& why, bool was_up) {
  const bool is_news = was_up || told_ != why.code;
  told_ = why.code;
  if (is_news && shared_.handlers.on_peer) shared_.handlers.on_peer({node_, false, {}, why});
}

std::uint64_t Peer::backoff_ns() {
  const TcpOptions& options = shared_.options;
  std::uint64_t top_ns = options.backoff_min_ns;
  for (unsigned i = 0; i < failures_ && top_ns < options.backoff_max_ns; ++i) top_ns *= 2;
  top_ns = std::max<std::uint64_t>(std::min(top_ns, options.backoff_max_ns), 2);
  ++failures_;
  // Half of it is chance: nodes that lost the same peer do not come back all at once.
  return top_ns / 2 + shared_.random.next() % (top_ns / 2 + 1);
}

std::string Peer::place() const {
  const tcp::endpoint& endpoint = endpoints_[next_endpoint_ % endpoints_.size()];
  return "node " + std::to_string(node_.value) + " at " + endpoint.address().to_string() +
         " port " + std::to_string(endpoint.port());
}

std::uint64_t Peer::on_time(std::uint64_t now_ns) {
  expire(now_ns);
  std::shared_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    connection = connection_;
  }
  if (connection) {
    const Heartbeat::Verdict verdict = heartbeat_.on_time(now_ns);
    if (verdict.is_silent) {
      count(counts_->silences);
      become_down(Error(Code::kTimeout, "nothing was heard"));
    } else if (verdict.asks) {
      connection->send(OutFrame{});
    }
  }
  if (now_ns >= handshake_end_ns_) become_down(Error(Code::kTimeout, "no answer to the handshake"));
  if (now_ns >= retry_at_ns_) dial();
  std::lock_guard lock(mutex_);
  const std::uint64_t pulse_ns = connection_ ? heartbeat_.due_ns() : kNever;
  return std::min({pulse_ns, handshake_end_ns_, retry_at_ns_, table_.due_ns()});
}

void Peer::stop(const Error& why) {
  std::vector<Finished> finished;
  {
    std::lock_guard lock(mutex_);
    state_ = State::kStopped;
    finished = table_.fail(why, why);
  }
  drop_connection();
  finish(std::move(finished));
}

}  // namespace kvsyncfs
