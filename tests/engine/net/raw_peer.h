// A hand-made end of a connection that says what it likes, frame by frame or byte by byte.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "engine/base/checksum.h"
#include "engine/format/codec.h"
#include "engine/net/auth.h"
#include "tests/engine/net/net_fixture.h"

namespace kvsyncfs {

struct RawFrame {
  FrameHeader header;
  std::string head, body;
};

class RawPeer {
 public:
  /// Connects to a node.
  explicit RawPeer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    set_patience();
  }
  /// Takes over an accepted socket.
  static RawPeer of_socket(int socket) { return RawPeer(Taken{socket}); }
  RawPeer(RawPeer&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), sequence_(other.sequence_) {}
  RawPeer& operator=(RawPeer&&) = delete;
  ~RawPeer() {
    if (socket_ >= 0) ::close(socket_);
  }

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  bool send_bytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// The bytes of the next frame, in its turn.
  std::string frame(FrameType type, std::string head = {}, std::string body = {},
                    std::uint64_t request = 0, std::uint16_t kind = 0) {
    FrameHeader header;
    header.type = type;
    header.kind = kind;
    header.sequence = ++sequence_;
    header.request = request;
    header.head_size = static_cast<std::uint32_t>(head.size());
    header.body_size = static_cast<std::uint32_t>(body.size());
    header.timeout_us = 1'000'000;
    std::string bytes = encode(header);
    bytes.append(head).append(body);
    if (header.has_trailer())
      bytes += encode(make_trailer(crc32c(as_bytes(body), crc32c(as_bytes(head))), 0));
    return bytes;
  }
  bool send(FrameType type, std::string head = {}, std::string body = {}, std::uint64_t request = 0,
            std::uint16_t kind = 0) {
    return send_bytes(frame(type, std::move(head), std::move(body), request, kind));
  }

  /// Nothing: the other side closed, or said nothing for too long (which fails the test).
  std::optional<RawFrame> receive() {
    RawFrame frame;
    std::string bytes;
    if (!receive_bytes(kFrameHeaderSize, bytes)) return std::nullopt;
    frame.header = decode_frame_header(bytes).value();
    if (!receive_bytes(frame.header.head_size, frame.head)) return std::nullopt;
    if (!receive_bytes(frame.header.body_size, frame.body)) return std::nullopt;
    if (frame.header.has_trailer() && !receive_bytes(kFrameTrailerSize, bytes)) return std::nullopt;
    return frame;
  }
  /// What comes next that is no heartbeat.
  std::optional<RawFrame> receive_message() {
    for (;;) {
      auto frame = receive();
      if (!frame || (frame->header.type != FrameType::kPing)) return frame;
    }
  }
  /// Reads on until the other side closes. False: it does not.
  bool sees_close() {
    char bytes[4096];
    for (;;) {
      const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
      if (got == 0) return true;
      if (got < 0) return errno == ECONNRESET;
    }
  }

  static Hello hello(std::uint64_t node, std::uint64_t wanted, std::uint64_t incarnation = 1) {
    Hello hello;
    hello.volume = test_volume();
    hello.node = {node};
    hello.wanted = {wanted};
    hello.incarnation = {incarnation};
    hello.nonce.fill(9);
    return hello;
  }
  static std::string text(const Proof& proof) {
    return {reinterpret_cast<const char*>(proof.data()), proof.size()};
  }

  /// The whole handshake as a dialer. False: it was refused.
  bool greet(const Hello& hello, const std::string& secret = test_options(1).secret) {
    const std::string hello_head = encode(hello);
    if (!send(FrameType::kHello, hello_head)) return false;
    const auto challenge = receive();
    if (!challenge || challenge->header.type != FrameType::kChallenge) return false;
    const std::string rest = challenge->head.substr(std::tuple_size_v<Proof>);
    if (!send(FrameType::kProof, text(make_proof(secret, Side::kDialer, hello_head, rest))))
      return false;
    const auto welcome = receive();
    return welcome && welcome->header.type == FrameType::kWelcome;
  }
  /// The whole handshake as an acceptor.
  bool accept_greeting(std::uint64_t node, const Welcome& grants,
                       const std::string& secret = test_options(1).secret) {
    const auto hello = receive();
    if (!hello || hello->header.type != FrameType::kHello) return false;
    Challenge challenge;
    challenge.node = {node};
    challenge.incarnation = {1};
    const std::string rest = encode(challenge);
    const Proof proof = make_proof(secret, Side::kAcceptor, hello->head, rest);
    if (!send(FrameType::kChallenge, text(proof) + rest)) return false;
    const auto answer = receive();
    return answer && answer->header.type == FrameType::kProof &&
           answer->head == text(make_proof(secret, Side::kDialer, hello->head, rest)) &&
           send(FrameType::kWelcome, encode(grants));
  }

 private:
  struct Taken {
    int socket;
  };
  explicit RawPeer(Taken taken) : socket_(taken.socket) { set_patience(); }

  void set_patience() {
    const timeval patience{kPatience.count(), 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  bool receive_bytes(std::size_t size, std::string& bytes) {
    bytes.resize(size);
    for (std::size_t at = 0; at < size;) {
      const ssize_t got = ::recv(socket_, bytes.data() + at, size - at, 0);
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) ADD_FAILURE() << "nothing came";
      if (got <= 0) return false;
      at += static_cast<std::size_t>(got);
    }
    return true;
  }

  int socket_;
  std::uint64_t sequence_ = 0;
};

/// Listens as a node would, with a RawPeer for each who comes.
class RawListener {
 public:
  RawListener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = RawPeer::loopback(0);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, generic, size), 0);
    EXPECT_EQ(::listen(socket_, 16), 0);
    EXPECT_EQ(::getsockname(socket_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~RawListener() { ::close(socket_); }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  RawPeer accept() { return RawPeer::of_socket(::accept(socket_, nullptr, nullptr)); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

}  // namespace kvsyncfs
