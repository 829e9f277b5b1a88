#include "tests/sim/cluster/sim_network.h"

#include <algorithm>

#include "engine/format/peer_message.h"
#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {
namespace {

namespace sim = sim_threads;

constexpr std::uint64_t kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr std::uint64_t kKeepNs = 250 * kMillisecond;
constexpr std::uint64_t kSilenceNs = kSecond;
constexpr std::size_t kCallsMax = 256;  // under way, of one peer

std::string peer_name(NodeId node) { return "node " + std::to_string(node.value); }

}  // namespace

SimTransport* SimNetwork::life_of(NodeId node) const {
  const auto life = lives_.find(node);
  return life == lives_.end() ? nullptr : life->second;
}

void SimNetwork::send(NodeId from, NodeId to, std::uint64_t connection, Event event) {
  Link& link = links_[{from, to}];
  const std::uint64_t now_ns = sim::now_ns();
  std::uint64_t due_ns = now_ns + 40 * kMicrosecond + random_.below(120 * kMicrosecond);
  if (random_.one_in(50)) due_ns += random_.below(5 * kMillisecond);
  due_ns = std::max({due_ns, link.stalled_until_ns, link.last_due_ns});
  SimTransport* target = life_of(to);
  if (link.is_cut || target == nullptr || broken_.contains(connection)) return;
  link.last_due_ns = due_ns;
  target->events_[{due_ns, ++next_}] = [this, connection,
                                        event = std::move(event)](SimTransport& there) {
    if (!broken_.contains(connection)) event(there);
  };
  target->wake_loop(due_ns);
}

void SimNetwork::cut(NodeId from, NodeId to) {
  links_[{from, to}].is_cut = true;
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)})
    if (SimTransport* life = life_of(a))
      if (const auto peer = life->peers_.find(b); peer != life->peers_.end())
        broken_.insert(peer->second.connection);
  broken_.erase(0);
}

void SimNetwork::reset(NodeId a, NodeId b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    SimTransport* life = life_of(from);
    if (life == nullptr) continue;
    life->events_[{sim::now_ns(), ++next_}] = [node = to](SimTransport& there) {
      there.lose(node, Code::kDisconnected);
    };
    life->wake_loop(sim::now_ns());
  }
}

SimTransport::SimTransport(SimNetwork& network, NodeId node, Incarnation incarnation)
    : network_(network), node_(node), incarnation_(incarnation) {}

SimTransport::~SimTransport() { stop(); }

void SimTransport::die(bool quietly) {
  if (is_dead_) return;
  is_dead_ = true;
  if (network_.life_of(node_) == this) network_.lives_.erase(node_);
  events_.clear();
  for (const auto& [node, peer] : peers_) {
    if (quietly) continue;
    network_.send(node_, node, 0, [from = node_, incarnation = incarnation_](SimTransport& there) {
      const auto known = there.peers_.find(from);
      if (known != there.peers_.end() && known->second.incarnation == incarnation)
        there.lose(from, Code::kDisconnected);
    });
  }
  wake_loop(0);
}

void SimTransport::stop() {
  die(false);
  if (loop_.joinable()) loop_.join();
}

Status SimTransport::start(TransportHandlers handlers) {
  handlers_ = std::move(handlers);
  network_.lives_[node_] = this;
  loop_ = std::thread([this] { run(); });
  return {};
}

Status SimTransport::set_peer(NodeId node, const std::vector<std::string>& addresses) {
  if (node == node_ || addresses.empty()) return Code::kInvalid;
  if (is_dead_) return Code::kShutdown;
  if (peers_.contains(node)) return {};
  ask_for_connection(node, peers_[node]);
  return {};
}

void SimTransport::remove_peer(NodeId node) {
  lose(node, Code::kDisconnected);
  peers_.erase(node);
}

Result<RegionKey> SimTransport::register_region(Bytes memory) {
  const RegionKey key{++network_.next_};
  regions_[key] = memory;
  return key;
}

std::vector<PeerStatus> SimTransport::peers() const {
  std::vector<PeerStatus> all;
  for (const auto& [node, peer] : peers_) {
    PeerStatus status;
    status.node = node;
    status.incarnation = peer.incarnation;
    status.is_up = peer.state == Peer::State::kUp;
    for (const auto& [number, waiting] : calls_) status.outstanding_calls += waiting.peer == node;
    all.push_back(status);
  }
  return all;
}

// The loop.

void SimTransport::wake_loop(std::uint64_t due_ns) {
  if (due_ns < wakes_ns_) sim::wake(this);
}

void SimTransport::run() {
  while (!is_dead_) {
    wakes_ns_ = step();
    if (!is_dead_ && wakes_ns_ > sim::now_ns()) static_cast<void>(sim::wait(this, wakes_ns_));
    wakes_ns_ = 0;
  }
  end_calls([](const Waiting&) { return true; }, Code::kShutdown);
}

std::uint64_t SimTransport::step() {
  while (!events_.empty() && events_.begin()->first.first <= sim::now_ns() && !is_dead_) {
    const Event event = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    event(*this);
  }
  end_calls([](const Waiting& waiting) { return waiting.deadline_ns <= sim::now_ns(); },
            Code::kTimeout);
  if (keep_due_ns_ <= sim::now_ns()) {
    keep_due_ns_ = sim::now_ns() + kKeepNs;
    std::vector<NodeId> nodes;
    for (const auto& [node, peer] : peers_) nodes.push_back(node);
    for (const NodeId node : nodes)
      if (const auto peer = peers_.find(node); peer != peers_.end()) keep(node, peer->second);
  }
  std::uint64_t due_ns = keep_due_ns_;
  if (!events_.empty()) due_ns = std::min(due_ns, events_.begin()->first.first);
  for (const auto& [number, waiting] : calls_) due_ns = std::min(due_ns, waiting.deadline_ns);
  return due_ns;
}

// Connections.

void SimTransport::keep(NodeId node, Peer& peer) {
  if (network_.faults.forges_acknowledgements) forge_acknowledgement(node, peer);
  const std::uint64_t now_ns = sim::now_ns();
  if (peer.connection == 0) return ask_for_connection(node, peer);
  if (peer.state == Peer::State::kUp) {
    if (now_ns - peer.heard_ns > kSilenceNs) return lose(node, Code::kTimeout);
    network_.send(node_, node, peer.connection,
                  [from = node_, connection = peer.connection](SimTransport& there) {
                    if (!there.knows(from, connection)) return;
                    there.network_.send(there.node_, from, connection,
                                        [to = there.node_, connection](SimTransport& here) {
                                          here.heard(to, connection);
                                        });
                  });
  } else if (now_ns - peer.asked_ns > kSilenceNs) {
    lose(node, Code::kUnreachable);
  }
}

void SimTransport::ask_for_connection(NodeId node, Peer& peer) {
  peer.connection = ++network_.next_;
  peer.asked_ns = sim::now_ns();
  network_.send(node_, node, peer.connection,
                [from = node_, connection = peer.connection, life = incarnation_](
                    SimTransport& there) { there.greeted(from, connection, life); });
}

void SimTransport::greeted(NodeId from, std::uint64_t connection, Incarnation incarnation) {
  if (handlers_.admit && !handlers_.admit(from, incarnation)) return;
  accepted_[connection] = incarnation;
  network_.send(node_, from, connection,
                [to = node_, connection, life = incarnation_](SimTransport& there) {
                  there.welcomed(to, connection, life);
                });
}

void SimTransport::welcomed(NodeId from, std::uint64_t connection, Incarnation incarnation) {
  const auto known = peers_.find(from);
  if (known == peers_.end() || known->second.connection != connection) return;
  Peer& peer = known->second;
  peer.state = Peer::State::kUp;
  peer.incarnation = incarnation;
  peer.heard_ns = sim::now_ns();
  for (auto& [number, waiting] : calls_)
    if (waiting.peer == from && waiting.connection == 0) transmit(number, waiting, connection);
  if (handlers_.on_peer) handlers_.on_peer({from, true, incarnation, {}});
}

void SimTransport::heard(NodeId from, std::uint64_t connection) {
  const auto known = peers_.find(from);
  if (known != peers_.end() && known->second.connection == connection)
    known->second.heard_ns = sim::now_ns();
}

void SimTransport::lose(NodeId node, Code why) {
  const auto known = peers_.find(node);
  if (known == peers_.end()) return;
  Peer& peer = known->second;
  const bool is_news = peer.state != Peer::State::kDown;
  peer.state = Peer::State::kDown;
  network_.broken_.insert(peer.connection);
  network_.broken_.erase(0);
  peer.connection = 0;
  const Incarnation incarnation = peer.incarnation;
  end_calls([node](const Waiting& waiting) { return waiting.peer == node; },
            why == Code::kUnreachable ? why : Code::kDisconnected);
  if (is_news && handlers_.on_peer)
    handlers_.on_peer({node, false, incarnation, Error(why, peer_name(node))});
}

bool SimTransport::knows(NodeId from, std::uint64_t connection) {
  if (accepted_.contains(connection)) return true;
  network_.send(node_, from, 0, [to = node_, connection](SimTransport& there) {
    const auto known = there.peers_.find(to);
    if (known != there.peers_.end() && known->second.connection == connection)
      there.lose(to, Code::kDisconnected);
  });
  return false;
}

// Calls.

void SimTransport::end_calls(const std::function<bool(const Waiting&)>& which, Code why) {
  std::vector<Waiting> ended;
  for (auto i = calls_.begin(); i != calls_.end();) {
    if (!which(i->second)) {
      ++i;
      continue;
    }
    ended.push_back(std::move(i->second));
    i = calls_.erase(i);
  }
  for (const Waiting& waiting : ended) waiting.done(nullptr, Error(why, peer_name(waiting.peer)));
}

Status SimTransport::accept(Waiting waiting) {
  if (is_dead_) return Code::kShutdown;
  if (waiting.deadline_ns <= sim::now_ns()) return Error(Code::kTimeout, peer_name(waiting.peer));
  const auto known = peers_.find(waiting.peer);
  if (known == peers_.end() || known->second.state == Peer::State::kDown)
    return Error(Code::kUnreachable, peer_name(waiting.peer));
  const auto under_way = std::count_if(calls_.begin(), calls_.end(), [&](const auto& call) {
    return call.second.peer == waiting.peer;
  });
  if (static_cast<std::size_t>(under_way) >= kCallsMax) return Code::kBusy;
  const std::uint64_t number = ++network_.next_;
  wake_loop(waiting.deadline_ns);
  Waiting& kept = calls_[number] = std::move(waiting);
  if (known->second.state == Peer::State::kUp) transmit(number, kept, known->second.connection);
  return {};
}

void SimTransport::transmit(std::uint64_t number, Waiting& waiting, std::uint64_t connection) {
  waiting.connection = connection;
  const std::uint64_t lost = network_.faults.lost_call, slow = network_.faults.slow_call;
  if (lost != 0 && network_.random_.one_in(lost)) return;
  if (slow != 0 && network_.random_.one_in(slow))
    network_.stall(node_, waiting.peer, sim::now_ns() + network_.random_.below(kSecond));
  network_.send(node_, waiting.peer, connection,
                [from = node_, connection, number, request = waiting.request](SimTransport& there) {
                  if (there.knows(from, connection)) request(there, connection, number);
                });
}

void SimTransport::answer(NodeId to, std::uint64_t connection, std::uint64_t number,
                          Result<Answer> answer) {
  if (is_dead_) return;
  const std::uint64_t lost = network_.faults.lost_call;
  if (lost != 0 && network_.random_.one_in(lost)) return;
  network_.send(
      node_, to, connection,
      [from = node_, connection, number, answer = std::move(answer)](SimTransport& there) {
        there.heard(from, connection);
        there.answered(number, answer);
      });
}

void SimTransport::answered(std::uint64_t number, const Result<Answer>& answer) {
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;  // too late
  const Waiting waiting = std::move(found->second);
  calls_.erase(found);
  waiting.done(answer ? &*answer : nullptr, answer ? Error() : answer.error());
}

void SimTransport::requested(NodeId from, std::uint64_t connection, std::uint64_t number,
                             Incoming request) {
  request.incarnation = accepted_[connection];
  if (!handlers_.on_request) return;
  // The transport outlives the answers: nodes keep theirs until the simulation is over.
  Responder responder([this, from, connection, number](Result<Answer> told) {
    answer(from, connection, number, std::move(told));
  });
  handlers_.on_request(std::move(request), std::move(responder));
}

Status SimTransport::call(NodeId peer, Call call) {
  if (call.head.size() > kMessageHeadSizeMax || call.body.bytes.size() > kTransferSizeMax)
    return Code::kTooBig;
  Waiting waiting;
  waiting.peer = peer;
  waiting.deadline_ns = sim::time_of(call.deadline_ns);
  waiting.done = [done = std::move(call.done), room = call.reply_body](const Answer* answer,
                                                                       const Error& error) {
    if (answer == nullptr) return done(error);
    const Bytes body = answer->body.bytes;
    if (body.size() > room.size()) return done(Code::kRange);
    std::copy(body.begin(), body.end(), room.begin());
    done(Reply{answer->head, body.size()});
  };
  waiting.request = [from = node_, kind = call.kind, head = std::move(call.head), body = call.body,
                     deadline_ns = waiting.deadline_ns](
                        SimTransport& there, std::uint64_t connection, std::uint64_t number) {
    if (there.network_.faults.forges_copies &&
        kind == static_cast<std::uint16_t>(PeerRequest::kReplicate))
      return there.answer(from, connection, number, Answer{});
    Incoming request;
    request.peer = from;
    request.kind = kind;
    request.head = head;
    request.body = AlignedBuffer(body.bytes.size());
    std::copy(body.bytes.begin(), body.bytes.end(), request.body.data());
    request.deadline_ns = sim::shown_ns(deadline_ns);
    there.requested(from, connection, number, std::move(request));
  };
  return accept(std::move(waiting));
}

Status SimTransport::read(NodeId peer, RegionRead read) {
  if (read.out.empty() || read.out.size() > kTransferSizeMax) return Code::kTooBig;
  Waiting waiting;
  waiting.peer = peer;
  waiting.deadline_ns = sim::time_of(read.deadline_ns);
  waiting.done = [done = std::move(read.done), out = read.out](const Answer* answer,
                                                               const Error& error) {
    if (answer == nullptr) return done(error);
    std::copy(answer->body.bytes.begin(), answer->body.bytes.end(), out.begin());
    done({});
  };
  waiting.request = [from = node_, key = read.key, offset = read.offset, size = read.out.size()](
                        SimTransport& there, std::uint64_t connection, std::uint64_t number) {
    Result<Answer> told = Code::kStale;
    const auto region = there.regions_.find(key);
    if (region != there.regions_.end()) {
      const Bytes memory = region->second;
      if (offset > memory.size() || size > memory.size() - offset) {
        told = Code::kInvalid;
      } else {
        auto copy = std::make_shared<std::string>(as_string(memory.subspan(offset, size)));
        told = Answer{{}, {as_bytes(*copy), copy}};
      }
    }
    there.answer(from, connection, number, std::move(told));
  };
  return accept(std::move(waiting));
}

/// As if the peer had acknowledged whatever there is.
void SimTransport::forge_acknowledgement(NodeId from, const Peer& peer) {
  if (peer.state != Peer::State::kUp || !handlers_.on_request) return;
  Incoming request;
  request.peer = from;
  request.incarnation = peer.incarnation;
  request.kind = static_cast<std::uint16_t>(PeerRequest::kAcknowledge);
  request.head = encode(Acknowledge{{~std::uint64_t{0}}, {}, 0, peer.incarnation, {}});
  handlers_.on_request(std::move(request), Responder([](const Result<Answer>&) {}));
}

}  // namespace kvsyncfs
