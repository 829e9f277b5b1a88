// One TCP connection: a socket, its receiver and its sender.
//
// Everything but send() belongs to the loop. Connections are shared: a thread that sends keeps the
// socket open until it has finished, so that a number of a closed descriptor is never used.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>

#include "engine/net/tcp/receiver.h"
#include "engine/net/tcp/sender.h"
#include "engine/net/tcp/tls.h"

namespace kvsyncfs {

/// Takes what comes in. A frame that it does not want ends the connection by an error.
class ConnectionOwner : public FrameSink {
 public:
  /// The connection is closed already. Not called after close(). Thread: the loop.
  virtual void on_closed(const Error& why) = 0;
  /// Bytes came, if only a part of a frame: a sign of life. Thread: the loop.
  virtual void on_heard() = 0;
  /// What to say before the connection is closed for what came in. Thread: the loop.
  virtual std::optional<OutFrame> last_words(const Error& why) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// Of a connected socket, encrypted where `tls` is not null. The owner lives until close() or
  /// on_closed().
  Connection(boost::asio::ip::tcp::socket socket, const Regions& regions, const TlsContext* tls,
             Side side, ConnectionOwner& owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();  ///< begins to receive
  /// The peer is known: its frames are counted, its buffer grows.
  void set_peer(const std::shared_ptr<LivePeerCounts>& counts);
  /// Queues a frame and sends what the socket takes. Thread: any.
  void send(OutFrame frame);
  /// Queues a frame; flush() must follow. For callers who hold a lock. Thread: any.
  void push(OutFrame frame) { sender_.push(std::move(frame)); }
  void flush();  ///< Thread: any.
  void drop_body() { receiver_.drop_body(); }
  void close();
  bool is_open() const { return owner_ != nullptr; }
  /// It ended because the other side has no certificate that is trusted, or does not trust ours.
  bool has_failed_tls() const { return tls_ && !tls_->failure(); }

 private:
  void shake_hands();
  ssize_t read_some(const std::array<MutableBytes, 2>& room);
  void lose(const char* text);
  void wait_readable();
  void receive();
  void use_turn();
  void wait_writable();
  void fail(const Error& why);

  boost::asio::ip::tcp::socket socket_;
  const int descriptor_;
  ConnectionOwner* owner_;          // null when closed
  std::unique_ptr<TlsStream> tls_;  // null: nothing is encrypted
  Receiver receiver_;
  Sender sender_;
  std::shared_ptr<LivePeerCounts> counts_;  // shared with the peer's other connections
};

}  // namespace kvsyncfs
