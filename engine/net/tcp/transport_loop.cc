// The loop: accepts, keeps the time of peers and sessions, ends everything.
#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/net/tcp/transport_impl.h"

namespace kvsyncfs {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::uint64_t kAcceptPauseNs = 100'000'000;

}  // namespace

void TcpTransportImpl::run() {
  const auto guard = asio::make_work_guard(shared_.io);
  shared_.io.run();
}

void TcpTransportImpl::stop() {
  asio::post(shared_.io, [this] {
    end_all();
    shared_.io.stop();
  });
}

void TcpTransportImpl::set_secrets(std::vector<std::string> secrets) {
  asio::post(shared_.io, [this, secrets = std::move(secrets)]() mutable {
    shared_.self.secrets = std::move(secrets);
  });
}

void TcpTransportImpl::end_all() {
  {
    std::lock_guard lock(peers_mutex_);
    is_stopped_ = true;
  }
  boost::system::error_code ignored;  // it ends either way
  acceptor_.close(ignored);
  timer_.cancel();
  for (const auto& peer : all_peers()) peer->stop(Error(Code::kShutdown, "the transport ends"));
  for (const auto& session : std::exchange(sessions_, {})) session->close();
}

std::vector<std::shared_ptr<Peer>> TcpTransportImpl::all_peers() const {
  std::vector<std::shared_ptr<Peer>> all;
  std::lock_guard lock(peers_mutex_);
  for (const auto& [node, peer] : peers_) all.push_back(peer);
  return all;
}

void TcpTransportImpl::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error && error != asio::error::connection_aborted) {
      accept_at_ns_ = shared_.clock.boot_ns() + kAcceptPauseNs;
      return schedule(accept_at_ns_);
    }
    if (!error) on_accepted(std::move(socket));
    accept();
  });
}

void TcpTransportImpl::on_accepted(tcp::socket socket) {
  count(shared_.counts.accepted);
  boost::system::error_code error;
  const tcp::endpoint remote = socket.remote_endpoint(error);
  if (error) return;  // it has gone already
  make_room_for_stranger();
  const std::string address =
      remote.address().to_string() + " port " + std::to_string(remote.port());
  sessions_.push_back(std::make_shared<Session>(shared_, static_cast<SessionHost&>(*this),
                                                std::move(socket), address));
  const auto session = sessions_.back();
  session->start();
}

/// A node needs milliseconds for its handshake, so the oldest stranger is the least likely to be
/// one.
void TcpTransportImpl::make_room_for_stranger() {
  const auto is_stranger = [](const auto& s) { return s->is_open() && s->is_stranger(); };
  const auto strangers = std::count_if(sessions_.begin(), sessions_.end(), is_stranger);
  if (strangers < static_cast<std::ptrdiff_t>(shared_.options.strangers_max)) return;
  const auto oldest = *std::find_if(sessions_.begin(), sessions_.end(), is_stranger);
  oldest->refuse(Error(Code::kBusy, "too many connections at once"));
}

Status TcpTransportImpl::admit(Session& session) {
  const PeerIdentity& peer = session.peer();
  if (shared_.handlers.admit) KVSYNCFS_TRY(shared_.handlers.admit(peer.node, peer.incarnation));
  std::size_t count = 0;
  std::shared_ptr<Session> older;
  for (const auto& other : sessions_) {
    if (!other->is_open() || other->is_stranger()) continue;
    ++count;
    if (other->peer().node == peer.node) older = other;
  }
  if (older && older->peer().incarnation > peer.incarnation)
    return Error(Code::kStale, "a later life of this node is connected");
  if (older) {
    older->close();
  } else if (count >= shared_.options.sessions_max) {
    return Error(Code::kBusy, "too many nodes are connected");
  }
  if (const auto known = find(peer.node)) (*known)->dial_soon();
  return {};
}

void TcpTransportImpl::on_ended() {
  asio::post(shared_.io,
             [this] { sessions_.remove_if([](const auto& s) { return !s->is_open(); }); });
}

void TcpTransportImpl::close_sessions(NodeId node) {
  for (const auto& session : sessions_) {
    if (session->is_open() && !session->is_stranger() && session->peer().node == node)
      session->close();
  }
}

void TcpTransportImpl::schedule(std::uint64_t due_ns) {
  std::uint64_t current_ns = due_ns_.load();
  while (due_ns < current_ns) {
    if (due_ns_.compare_exchange_weak(current_ns, due_ns))
      return asio::post(shared_.io, [this] { set_timer(); });
  }
}

void TcpTransportImpl::set_timer() {
  const std::uint64_t due_ns = due_ns_.load(), now_ns = shared_.clock.boot_ns();
  if (due_ns == kNever) return;
  timer_.expires_after(std::chrono::nanoseconds(due_ns > now_ns ? due_ns - now_ns : 0));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) on_time();
  });
}

void TcpTransportImpl::on_time() {
  due_ns_ = kNever;
  const std::uint64_t now_ns = shared_.clock.boot_ns();
  std::uint64_t due_ns = kNever;
  for (const auto& peer : all_peers()) due_ns = std::min(due_ns, peer->on_time(now_ns));
  for (const auto& session : sessions_) due_ns = std::min(due_ns, session->on_time(now_ns));
  if (now_ns >= accept_at_ns_) {
    accept_at_ns_ = kNever;
    accept();
  }
  schedule(std::min(due_ns, accept_at_ns_));
}

void TcpTransportImpl::pump_all() {
  auto all = all_peers();
  if (all.empty()) return;
  // Another one is first each time.
  const auto first = static_cast<std::ptrdiff_t>(pump_turn_++ % all.size());
  std::rotate(all.begin(), all.begin() + first, all.end());
  for (const auto& peer : all) peer->pump();
}

}  // namespace kvsyncfs
