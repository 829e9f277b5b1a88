// A network of nodes in one process: calls reach the peer's handler at once, in the caller's
// thread. Nodes may be down, or not answer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "engine/net/transport.h"

namespace kvsyncfs {

class LoopTransport;

struct LoopNet {
  std::map<NodeId, LoopTransport*> nodes;
  std::set<NodeId> down;
};

class LoopTransport final : public Transport {
 public:
  LoopTransport(LoopNet& net, NodeId self) : net_(net), self_(self) { net.nodes[self] = this; }

  Status start(TransportHandlers handlers) override {
    handlers_ = std::move(handlers);
    return {};
  }
  Status set_peer(NodeId, const std::vector<std::string>&) override { return {}; }
  void remove_peer(NodeId) override {}

  Status call(NodeId peer, Call call) override {
    ++calls_[peer];
    if (net_.down.contains(peer)) return Error(Code::kUnreachable, "down");
    Incoming incoming;
    incoming.peer = self_;
    incoming.incarnation = {1};
    incoming.kind = call.kind;
    incoming.head = call.head;
    incoming.body = AlignedBuffer(call.body.bytes.size());
    std::copy(call.body.bytes.begin(), call.body.bytes.end(), incoming.body.data());
    auto answer = [done = call.done, room = call.reply_body](Result<Answer> answered) {
      if (!answered) return done(answered.error());
      const Bytes body = answered->body.bytes;
      if (body.size() > room.size()) return done(Error(Code::kRange, "reply_body"));
      std::copy(body.begin(), body.end(), room.data());
      done(Reply{answered->head, body.size()});
    };
    net_.nodes.at(peer)->handlers_.on_request(std::move(incoming), Responder(answer));
    return {};
  }
  Status read(NodeId, RegionRead) override { return Code::kUnsupported; }
  Result<RegionKey> register_region(Bytes) override { return Code::kUnsupported; }
  void unregister_region(RegionKey) override {}

  std::vector<PeerStatus> peers() const override {
    std::vector<PeerStatus> all;
    for (const auto& [node, transport] : net_.nodes) {
      if (node == self_) continue;
      PeerStatus peer;
      peer.node = node;
      peer.is_up = !net_.down.contains(node);
      all.push_back(peer);
    }
    return all;
  }
  TransportCounters counters() const override { return {}; }

  std::size_t calls(NodeId peer) { return calls_[peer]; }

 private:
  LoopNet& net_;
  const NodeId self_;
  TransportHandlers handlers_;
  std::map<NodeId, std::size_t> calls_;
};

}  // namespace kvsyncfs
