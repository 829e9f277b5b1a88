// Transport over TCP (Boost.Asio). Needs no special device; regions are answered by the peer's
// loop.
//
// Each pair of nodes has two connections: the one that a node dialed carries its requests, and the
// answers to them. Addresses are numeric: "10.0.0.3:7450", "[fd00::3]:7450"; looking names up would
// take a thread.
//
// With certificates (TcpOptions::tls) all bytes go through TLS 1.3, and both sides verify.
//
// Threads: starts none. One thread calls run(), which returns after stop(). It receives, keeps the
// deadlines and calls handlers and done(); sending is done by whoever asks or answers. Destroy
// after run() has returned: what was not done then ends with kShutdown in the destructor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/env/clock.h"
#include "engine/env/random.h"
#include "engine/format/frame.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

/// Files in PEM. All three or none.
struct TlsFiles {
  std::string certificate_file;  ///< of this node, with the chain up to its authority
  std::string key_file;
  std::string ca_file;  ///< the authorities whose nodes are let in, and no others
  bool empty() const { return certificate_file.empty(); }
};

struct TcpOptions {
  NodeId node;
  Incarnation incarnation;
  VolumeUuid volume{};
  std::string secret;  ///< at least 16 bytes, best 32 random ones; the first, see set_secrets()

  TlsFiles tls;        ///< empty: nothing is encrypted
  std::string listen;  ///< numeric address; port 0 = any; empty = nobody can reach this node

  std::uint64_t heartbeat_ns = 250'000'000;  ///< between two pings of a connection
  /// Nothing heard for so long is a suspicion, and the connection is closed.
  std::uint64_t silence_ns = 1'000'000'000;
  std::uint64_t handshake_ns = 2'000'000'000;  ///< from the connect to Welcome
  std::uint64_t backoff_min_ns = 50'000'000;   ///< before the second try; doubles, with jitter
  std::uint64_t backoff_max_ns = 2'000'000'000;

  std::uint64_t queue_calls_max = 1024;          ///< not sent yet, of one peer
  std::uint64_t queue_bytes_max = 16u << 20;     ///< their heads and bodies
  std::uint64_t read_bytes_max = 32u << 20;      ///< asked for and not received, of all peers
  std::uint64_t read_bytes_peer_max = 8u << 20;  ///< the same of one peer
  std::uint32_t grant_calls = 256;               ///< unanswered, that each peer may have here
  /// A ping stands behind these, so the link must carry them in less than silence_ns.
  std::uint32_t grant_bytes = 16u << 20;  ///< heads and bodies of them

  std::uint32_t sessions_max = 256;  ///< peers that may be connected to this node
  std::uint32_t strangers_max = 32;  ///< connections that have not proved anything yet
};

class TcpTransport : public Transport {
 public:
  /// Carries everything until stop(). Thread: one.
  virtual void run() = 0;
  /// Ends all connections and run(); what is under way ends with kShutdown. Thread: any.
  virtual void stop() = 0;
  /// As LocalIdentity::secrets, each of at least 16 bytes: of handshakes that begin from now on.
  /// Connections that stand stay. Thread: any.
  virtual void set_secrets(std::vector<std::string> secrets) = 0;
  /// Where it listens, after start(); 0 if it does not.
  virtual std::uint16_t port() const = 0;
};

/// Errors: kInvalid (an option, or a file of TLS), kNoMemory.
Result<std::unique_ptr<TcpTransport>> make_tcp_transport(Clock& clock, Random& random,
                                                         TcpOptions options);

}  // namespace kvsyncfs
