// The inside of TcpTransport: tcp_transport.cc has what any thread calls, transport_loop.cc what
// the loop does.
//
// Locks: peers_mutex_ and counts_mutex_ are taken alone; what they guard has locks of its own.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "engine/net/tcp/peer.h"
#include "engine/net/tcp/session.h"
#include "engine/net/tcp/shared.h"

namespace kvsyncfs {

class TcpTransportImpl final : public TcpTransport, private SessionHost {
 public:
  /// `tls` is null where nothing is encrypted.
  TcpTransportImpl(Clock& clock, Random& random, TcpOptions options,
                   std::unique_ptr<TlsContext> tls);
  ~TcpTransportImpl() override;

  Status start(TransportHandlers handlers) override;
  Status set_peer(NodeId node, const std::vector<std::string>& addresses) override;
  void remove_peer(NodeId node) override;
  Status call(NodeId peer, Call call) override;
  Status read(NodeId peer, RegionRead read) override;
  Result<RegionKey> register_region(Bytes memory) override { return shared_.regions.add(memory); }
  void unregister_region(RegionKey key) override { shared_.regions.remove(key); }
  std::vector<PeerStatus> peers() const override;
  TransportCounters counters() const override;

  void run() override;
  void stop() override;
  void set_secrets(std::vector<std::string> secrets) override;
  std::uint16_t port() const override { return port_; }

 private:
  Result<std::shared_ptr<Peer>> find(NodeId node) const;
  std::vector<std::shared_ptr<Peer>> all_peers() const;
  std::shared_ptr<LivePeerCounts> counts_of(NodeId node);

  // transport_loop.cc
  void accept();
  void on_accepted(boost::asio::ip::tcp::socket socket);
  void make_room_for_stranger();
  Status admit(Session& session) override;
  void on_ended() override;
  void close_sessions(NodeId node);
  void schedule(std::uint64_t due_ns);  // Thread: any
  void set_timer();
  void on_time();
  void pump_all();
  void end_all();

  Shared shared_;
  boost::asio::steady_timer timer_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;  // set by start()
  std::atomic<std::uint64_t> due_ns_ = kNever;

  mutable std::mutex peers_mutex_;
  bool is_stopped_ = false;
  std::map<NodeId, std::shared_ptr<Peer>> peers_;  // shared with handlers on their way

  mutable std::mutex counts_mutex_;
  std::map<NodeId, std::shared_ptr<LivePeerCounts>> counts_;  // shared with peers and sessions

  // The loop's.
  std::list<std::shared_ptr<Session>> sessions_;  // by age; shared with handlers on their way
  std::uint64_t accept_at_ns_ = kNever;           // after the process ran out of descriptors
  std::size_t pump_turn_ = 0;
};

}  // namespace kvsyncfs
