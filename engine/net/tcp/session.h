// A connection that another node dialed: a stranger until the handshake is over, then what it asks
// is answered. Memory is bounded: a stranger has 1 KiB, a peer twice what was granted to it
// (answers that are sent, but not yet known to be, count as unanswered here and not there). Thread:
// the loop; answers to requests may come from any.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "engine/net/tcp/connection.h"
#include "engine/net/tcp/heartbeat.h"
#include "engine/net/tcp/shared.h"

namespace kvsyncfs {

class Session;

class SessionHost {
 public:
  virtual ~SessionHost() = default;
  /// The node has proved itself. Errors: those of the daemon's `admit`, kStale (a later life of it
  /// is connected), kBusy (too many).
  virtual Status admit(Session& session) = 0;
  /// The session has ended. It may still be used until the host is back on the loop.
  virtual void on_ended() = 0;
};

/// Shared: answers find it gone, or still there.
class Session final : public ConnectionOwner, public std::enable_shared_from_this<Session> {
 public:
  Session(Shared& shared, SessionHost& host, boost::asio::ip::tcp::socket socket,
          std::string address);

  void start();
  /// Returns when to be called again.
  std::uint64_t on_time(std::uint64_t now_ns);
  /// Says why, if it is a stranger or about to be admitted, and ends.
  void refuse(const Error& why);
  void close();

  bool is_open() const { return connection_ != nullptr; }
  bool is_stranger() const { return handshake_.has_value(); }
  const PeerIdentity& peer() const { return peer_; }

  Result<MutableBytes> begin_frame(const FrameHeader& header) override;
  Status take_frame(const FrameHeader& header, std::string head, std::uint16_t code) override;
  void on_closed(const Error& why) override;
  void on_heard() override { heartbeat_.on_heard(shared_.clock.boot_ns()); }
  std::optional<OutFrame> last_words(const Error& why) override;

 private:
  /// What is unanswered of the peer. Shared with the answers on their way.
  struct Credits {
    std::atomic<std::uint64_t> calls = 0, bytes = 0;
  };
  class Hold;

  Status on_handshake(const FrameHeader& header, std::string_view head);
  Status take_credits(const FrameHeader& header);
  void take_request(const FrameHeader& header, std::string head);
  Status take_read(const FrameHeader& header, std::string_view head);

  Shared& shared_;
  SessionHost& host_;
  const std::string address_;
  std::shared_ptr<Connection> connection_;  // null when ended; answers keep it while they send
  std::optional<AcceptorHandshake> handshake_;
  bool was_refused_ = false;  // by the other side, who knows why
  std::uint64_t handshake_end_ns_;
  PeerIdentity peer_;
  std::shared_ptr<LivePeerCounts> counts_;  // shared with what this node asks of that one
  Heartbeat heartbeat_;
  std::uint64_t last_request_ = 0;
  const std::shared_ptr<Credits> credits_ = std::make_shared<Credits>();
  std::shared_ptr<const void> hold_;  // of the frame that is coming in
  AlignedBuffer body_;                // of the frame that is coming in
};

}  // namespace kvsyncfs
