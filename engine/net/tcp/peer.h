// What this node asks of one peer: keeps a connection to it, and the calls and reads over it.
//
//   dialing --Welcome--> up --closed, silent--> down --back-off, Welcome--> up
//   dialing --failed---> down
// While dialing, calls wait; while down they are refused at once.
//
// Threads: as said at each method; the loop alone connects, receives and keeps time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/net/tcp/call_table.h"
#include "engine/net/tcp/connection.h"
#include "engine/net/tcp/heartbeat.h"
#include "engine/net/tcp/shared.h"

namespace kvsyncfs {

/// Shared: handlers of the loop may run after it was forgotten.
class Peer final : public ConnectionOwner, public std::enable_shared_from_this<Peer> {
 public:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

  Peer(Shared& shared, NodeId node, std::shared_ptr<LivePeerCounts> counts);

  /// Errors: kBusy, kUnreachable, kTimeout. Thread: any.
  Status add(PendingCall call);
  /// Sends what has credits. Thread: any.
  void pump();
  PeerStatus status() const;  ///< Thread: any.

  /// Dials, if that is not where it is connected. Thread: the loop.
  void set_endpoints(Endpoints endpoints);
  /// The node has come here, so it is worth a try at once. Thread: the loop.
  void dial_soon();
  /// Deadlines, heartbeat, back-off. Returns when to be called again. Thread: the loop.
  std::uint64_t on_time(std::uint64_t now_ns);
  /// Ends everything with `why`, for good. Thread: the loop, or none runs.
  void stop(const Error& why);

  Result<MutableBytes> begin_frame(const FrameHeader& header) override;
  Status take_frame(const FrameHeader& header, std::string head, std::uint16_t code) override;
  void on_closed(const Error& why) override;
  void on_heard() override { heartbeat_.on_heard(shared_.clock.boot_ns()); }
  std::optional<OutFrame> last_words(const Error& why) override;

 private:
  enum class State : unsigned char { kDialing, kUp, kDown, kStopped };

  // peer_connect.cc
  void dial();
  void on_connected(boost::asio::ip::tcp::socket socket);
  Status on_handshake(const FrameHeader& header, std::string_view head);
  void become_up();
  void become_down(const Error& why);
  void drop_connection();
  void tell_down(const Error& why, bool was_up);
  std::uint64_t backoff_ns();
  std::string place() const;  ///< "node 3 at 10.0.0.3:7450"

  // peer.cc
  Status take_reply(const FrameHeader& header, std::string head, std::uint16_t code);
  std::shared_ptr<Connection> push_sendable();  ///< the lock is held; the caller flushes
  void expire(std::uint64_t now_ns);
  void finish(std::vector<Finished> finished);

  Shared& shared_;
  const NodeId node_;
  const std::shared_ptr<LivePeerCounts> counts_;  // shared with the sessions of that node

  mutable std::mutex mutex_;  // before the sender's and the budget's
  State state_ = State::kDialing;
  std::shared_ptr<Connection> connection_;  // while up; whoever sends keeps it
  CallTable table_;
  Incarnation incarnation_;
  std::uint64_t round_trip_ns_ = 0;

  // The loop's.
  Endpoints endpoints_;
  std::size_t next_endpoint_ = 0;
  std::uint64_t dial_number_ = 0;  // of the current try; a late connect of an older one is dropped
  std::shared_ptr<boost::asio::ip::tcp::socket> dialing_;  // with the handler of its connect
  std::shared_ptr<Connection> greeting_;                   // while the handshake lasts
  std::optional<DialerHandshake> handshake_;
  bool was_refused_ = false;  // by the other side, who knows why
  std::uint64_t handshake_end_ns_ = kNever, retry_at_ns_ = kNever;
  unsigned failures_ = 0;  // in a row
  std::optional<Code> told_;
  Heartbeat heartbeat_;
  std::uint64_t receiving_ = 0;  // request whose answer is coming in
};

}  // namespace kvsyncfs
