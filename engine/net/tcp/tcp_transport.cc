#include "engine/net/tcp/tcp_transport.h"

#include "engine/net/tcp/transport_impl.h"

namespace kvsyncfs {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t kNodesMax = 4096;
constexpr std::size_t kSecretSizeMin = 16;

static_assert(kMessageHeadSizeMax == kFrameHeadSizeMax && kTransferSizeMax == kFrameBodySizeMax,
              "what a caller may send fits into a frame");

/// Errors: kInvalid.
Result<tcp::endpoint> parse_endpoint(const std::string& text) {
  const Error bad(Code::kInvalid, "address '" + text + "': not a number:port");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return bad;
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  unsigned port = 0;
  for (const char digit : text.substr(colon + 1)) {
    if (digit < '0' || digit > '9') return bad;
    port = port * 10 + static_cast<unsigned>(digit - '0');
    if (port > 65535) return bad;
  }
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) return bad;
  return tcp::endpoint(address, static_cast<std::uint16_t>(port));
}

}  // namespace

TcpTransportImpl::TcpTransportImpl(Clock& clock, Random& random, TcpOptions options,
                                   std::unique_ptr<TlsContext> tls)
    : shared_(clock, random, std::move(options), std::move(tls)),
      timer_(shared_.io),
      acceptor_(shared_.io) {
  shared_.schedule = [this](std::uint64_t due_ns) { schedule(due_ns); };
  shared_.pump_all = [this] { pump_all(); };
  shared_.counts_of = [this](NodeId node) { return counts_of(node); };
}

TcpTransportImpl::~TcpTransportImpl() { end_all(); }

Status TcpTransportImpl::start(TransportHandlers handlers) {
  shared_.handlers = std::move(handlers);
  if (shared_.options.listen.empty()) return {};
  KVSYNCFS_ASSIGN(const tcp::endpoint endpoint, parse_endpoint(shared_.options.listen));
  boost::system::error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  if (error) {
    const bool in_use = error == asio::error::address_in_use;
    return Error(in_use ? Code::kBusy : from_errno(error.value()),
                 "listen at " + shared_.options.listen + ": " + error.message());
  }
  accept();
  return {};
}

Status TcpTransportImpl::set_peer(NodeId node, const std::vector<std::string>& addresses) {
  if (node.value == 0 || node == shared_.options.node)
    return Error(Code::kInvalid, "node " + std::to_string(node.value) + " is no peer");
  if (addresses.empty()) return Error(Code::kInvalid, "a peer without an address");
  Peer::Endpoints endpoints;
  for (const std::string& text : addresses) {
    KVSYNCFS_ASSIGN(const tcp::endpoint endpoint, parse_endpoint(text));
    endpoints.push_back(endpoint);
  }
  const auto counts = counts_of(node);
  if (!counts) return Error(Code::kInvalid, "too many nodes");
  std::lock_guard lock(peers_mutex_);
  if (is_stopped_) return Code::kShutdown;
  std::shared_ptr<Peer>& peer = peers_[node];
  if (!peer) peer = std::make_shared<Peer>(shared_, node, counts);
  asio::post(shared_.io,
             [peer, endpoints = std::move(endpoints)] { peer->set_endpoints(endpoints); });
  return {};
}

void TcpTransportImpl::remove_peer(NodeId node) {
  std::lock_guard lock(peers_mutex_);
  const auto found = peers_.find(node);
  std::shared_ptr<Peer> peer;
  if (found != peers_.end()) {
    peer = std::move(found->second);
    peers_.erase(found);
  }
  asio::post(shared_.io, [this, node, peer = std::move(peer)] {
    if (peer) peer->stop(Error(Code::kDisconnected, "the peer was removed"));
    close_sessions(node);
  });
}

Result<std::shared_ptr<Peer>> TcpTransportImpl::find(NodeId node) const {
  std::lock_guard lock(peers_mutex_);
  if (is_stopped_) return Code::kShutdown;
  const auto found = peers_.find(node);
  if (found == peers_.end()) return Code::kUnreachable;
  return found->second;
}

Status TcpTransportImpl::call(NodeId node, Call call) {
  if (call.head.size() > kMessageHeadSizeMax || call.body.bytes.size() > kTransferSizeMax ||
      call.reply_body.size() > kTransferSizeMax)
    return Code::kTooBig;
  KVSYNCFS_ASSIGN(const auto peer, find(node));
  PendingCall pending;
  pending.kind = call.kind;
  pending.head = std::move(call.head);
  pending.body = std::move(call.body);
  pending.out = call.reply_body;
  pending.deadline_ns = call.deadline_ns;
  pending.done = std::move(call.done);
  return peer->add(std::move(pending));
}

Status TcpTransportImpl::read(NodeId node, RegionRead read) {
  if (read.out.empty() || read.out.size() > kTransferSizeMax) return Code::kTooBig;
  KVSYNCFS_ASSIGN(const auto peer, find(node));
  PendingCall pending;
  pending.range =
      ReadRange{read.key.value, read.offset, static_cast<std::uint32_t>(read.out.size())};
  pending.out = read.out;
  pending.deadline_ns = read.deadline_ns;
  pending.done = [done = std::move(read.done)](Result<Reply> result) {
    done(result ? Status() : Status(std::move(result.error())));
  };
  return peer->add(std::move(pending));
}

std::shared_ptr<LivePeerCounts> TcpTransportImpl::counts_of(NodeId node) {
  std::lock_guard lock(counts_mutex_);
  const auto found = counts_.find(node);
  if (found != counts_.end()) return found->second;
  if (counts_.size() >= kNodesMax) return nullptr;
  return counts_[node] = std::make_shared<LivePeerCounts>();
}

std::vector<PeerStatus> TcpTransportImpl::peers() const {
  std::map<NodeId, PeerStatus> lines;
  {
    std::lock_guard lock(counts_mutex_);
    for (const auto& [node, counts] : counts_) {
      lines[node].node = node;
      lines[node].counts = counts->snapshot();
    }
  }
  for (const auto& peer : all_peers()) {
    PeerStatus line = peer->status();
    lines[line.node] = line;
  }
  std::vector<PeerStatus> result;
  for (auto& [node, line] : lines) result.push_back(line);
  return result;
}

TransportCounters TcpTransportImpl::counters() const {
  const LiveCounts& counts = shared_.counts;
  return {counts.accepted,           counts.refused_secret,  counts.refused_volume,
          counts.refused_identity,   counts.refused_version, counts.refused_crowd,
          counts.handshake_timeouts, counts.bad_frames,      shared_.budget.peak(),
          counts.refused_tls};
}

void count_refusal(LiveCounts& counts, Code code) {
  switch (code) {
    case Code::kAccess:
      return count(counts.refused_secret);
    case Code::kNotFound:
      return count(counts.refused_volume);
    case Code::kExists:
    case Code::kStale:
    case Code::kNotPermitted:
      return count(counts.refused_identity);
    case Code::kNewerFormat:
      return count(counts.refused_version);
    case Code::kBusy:
      return count(counts.refused_crowd);
    default:
      return;  // counted by what it is: a bad frame, a timeout
  }
}

Result<std::unique_ptr<TcpTransport>> make_tcp_transport(Clock& clock, Random& random,
                                                         TcpOptions options) {
  if (options.node.value == 0) return Error(Code::kInvalid, "a node id of 0");
  if (options.secret.size() < kSecretSizeMin)
    return Error(Code::kInvalid, "the secret of the volume is shorter than 16 bytes");
  if (options.grant_calls == 0 || options.heartbeat_ns == 0 ||
      options.silence_ns < 2 * options.heartbeat_ns || options.handshake_ns == 0 ||
      options.backoff_min_ns == 0 || options.backoff_max_ns < options.backoff_min_ns ||
      options.queue_calls_max == 0 || options.strangers_max == 0)
    return Error(Code::kInvalid, "an option of the transport is out of range");
  std::unique_ptr<TlsContext> tls;
  if (!options.tls.empty()) {
    KVSYNCFS_ASSIGN(tls, TlsContext::load(options.tls));
  }
  return std::unique_ptr<TcpTransport>(
      std::make_unique<TcpTransportImpl>(clock, random, std::move(options), std::move(tls)));
}

}  // namespace kvsyncfs
