// The network between simulated nodes: a Transport for each life of a node, over links that delay,
// stall, lose and break as a test says.
//
// Each node dials each other one, as over TCP: what is sent on one connection comes in order; a
// connection that breaks loses what is under way in it; silence for a second breaks it. A link goes
// one way and can be cut alone. A transport's loop is a thread of the node's group, so a frozen
// node hears nothing and is silent to the others.
//
// Thread: threads of the simulation (sim_threads.h). No lock: what is done here happens at once,
// save where a handler is called.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/net/transport.h"
#include "tests/sim/sim_image.h"

namespace kvsyncfs {

class SimTransport;

struct SimNetworkFaults {       ///< one in so many; 0: never
  std::uint64_t lost_call = 0;  ///< a request or its answer never comes; the connection stays
  std::uint64_t slow_call = 0;  ///< takes up to a second
  // What no network does, for tests of tests.
  bool forges_acknowledgements = false;  ///< whatever there is counts as acknowledged
  bool forges_copies = false;            ///< a batch counts as kept, and is dropped
};

class SimNetwork {
 public:
  explicit SimNetwork(std::uint64_t seed) : random_(seed) {}

  SimNetworkFaults faults;

  /// What `from` sends to `to` is lost from now on; their connections break when that is seen.
  void cut(NodeId from, NodeId to);
  void mend(NodeId from, NodeId to) { links_[{from, to}].is_cut = false; }
  bool is_cut(NodeId from, NodeId to) { return links_[{from, to}].is_cut; }
  /// What is sent until then comes then.
  void stall(NodeId from, NodeId to, std::uint64_t until_ns) {
    links_[{from, to}].stalled_until_ns = until_ns;
  }
  /// Their connections break now, and both see it.
  void reset(NodeId a, NodeId b);

 private:
  friend class SimTransport;
  using Event = std::function<void(SimTransport&)>;
  struct Link {
    bool is_cut = false;
    std::uint64_t stalled_until_ns = 0, last_due_ns = 0;
  };
  /// Runs `event` at `to`, if it comes there.
  void send(NodeId from, NodeId to, std::uint64_t connection, Event event);
  SimTransport* life_of(NodeId node) const;

  SimRandom random_;
  std::map<std::pair<NodeId, NodeId>, Link> links_;
  std::map<NodeId, SimTransport*> lives_;
  std::set<std::uint64_t> broken_;  // connections
  std::uint64_t next_ = 0;          // of connections, calls and events
};

class SimTransport final : public Transport {
 public:
  /// One life of a node.
  SimTransport(SimNetwork& network, NodeId node, Incarnation incarnation);
  ~SimTransport() override;

  /// Nothing goes out or comes in any more; calls end soon. With `quietly` the others are not told:
  /// the machine is gone, and not the process only.
  void die(bool quietly);
  /// After it no handler runs. Not from one.
  void stop();

  Status start(TransportHandlers handlers) override;
  Status set_peer(NodeId node, const std::vector<std::string>& addresses) override;
  void remove_peer(NodeId node) override;
  [[nodiscard]] Status call(NodeId peer, Call call) override;
  [[nodiscard]] Status read(NodeId peer, RegionRead read) override;
  Result<RegionKey> register_region(Bytes memory) override;
  void unregister_region(RegionKey key) override { regions_.erase(key); }
  std::vector<PeerStatus> peers() const override;
  TransportCounters counters() const override { return {}; }

 private:
  friend class SimNetwork;
  using Event = SimNetwork::Event;
  struct Peer {
    enum class State { kNew, kDown, kUp } state = State::kNew;
    std::uint64_t connection = 0;  ///< 0: none, not even one that is being made
    std::uint64_t heard_ns = 0, asked_ns = 0;
    Incarnation incarnation;
  };
  using Request =
      std::function<void(SimTransport& there, std::uint64_t connection, std::uint64_t number)>;
  struct Waiting {  ///< a call or a read under way
    NodeId peer;
    std::uint64_t connection = 0;  ///< 0: not sent yet
    std::uint64_t deadline_ns = 0;
    Request request;
    /// Null: it failed.
    std::function<void(const Answer*, const Error&)> done;
  };

  void run();
  std::uint64_t step();  ///< returns when the next is due
  void keep(NodeId node, Peer& peer);
  void ask_for_connection(NodeId node, Peer& peer);
  void greeted(NodeId from, std::uint64_t connection, Incarnation incarnation);
  void welcomed(NodeId from, std::uint64_t connection, Incarnation incarnation);
  void heard(NodeId from, std::uint64_t connection);
  void lose(NodeId node, Code why);
  void end_calls(const std::function<bool(const Waiting&)>& which, Code why);
  Status accept(Waiting waiting);
  void transmit(std::uint64_t number, Waiting& waiting, std::uint64_t connection);
  /// A request came by `connection`: it is known here, or its maker is told that it is gone.
  bool knows(NodeId from, std::uint64_t connection);
  void answer(NodeId to, std::uint64_t connection, std::uint64_t number, Result<Answer> answer);
  void answered(std::uint64_t number, const Result<Answer>& answer);
  void requested(NodeId from, std::uint64_t connection, std::uint64_t number, Incoming request);
  void forge_acknowledgement(NodeId from, const Peer& peer);
  void wake_loop(std::uint64_t due_ns);

  SimNetwork& network_;
  const NodeId node_;
  const Incarnation incarnation_;
  TransportHandlers handlers_;
  std::map<NodeId, Peer> peers_;
  std::map<std::uint64_t, Waiting> calls_;
  std::map<std::uint64_t, Incarnation> accepted_;                    // connections to here
  std::map<std::pair<std::uint64_t, std::uint64_t>, Event> events_;  // by time and number
  std::map<RegionKey, Bytes> regions_;
  bool is_dead_ = false;
  std::uint64_t keep_due_ns_ = 0, wakes_ns_ = 0;
  std::thread loop_;
};

}  // namespace kvsyncfs
