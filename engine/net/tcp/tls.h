// TLS 1.3 around the bytes of a connection, where the nodes have certificates. Both sides demand
// one that the cluster's own authority signed; who a node is and that it knows the secret is proved
// inside (handshake.h). The plain path knows nothing of this file.
//
// A stream does not block, and does no more than its socket lets it. Thread: any; one mutex over
// each step, because the library wants it.
#pragma once

#include <openssl/ssl.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/net/auth.h"
#include "engine/net/tcp/tcp_transport.h"

namespace kvsyncfs {

/// Certificate, key and authority of this node. Thread: any, once it is made.
class TlsContext {
 public:
  /// Errors: kInvalid, naming the file that is not good; also a certificate that the authority has
  /// not signed, or that has ended.
  static Result<std::unique_ptr<TlsContext>> load(const TlsFiles& files);
  ~TlsContext() { ::SSL_CTX_free(context_); }
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  SSL_CTX* get() const { return context_; }

 private:
  explicit TlsContext(SSL_CTX* context) : context_(context) {}
  SSL_CTX* const context_;
};

class TlsStream {
 public:
  /// Of a connected socket, which outlives it and stays the caller's.
  TlsStream(const TlsContext& context, int socket, Side side);
  ~TlsStream() { ::SSL_free(ssl_); }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  enum class Step : unsigned char { kDone, kWantsRead, kWantsWrite, kFailed };
  /// As far as it goes now; call again when the socket is ready for what it wants.
  Step shake_hands();
  /// The handshake is over, as far as this side can tell: a dialer hears later that its own
  /// certificate is not wanted, by receive().
  bool is_ready() const { return is_ready_; }
  /// Ok, or why the other side cannot be trusted: kAccess. Another end is none of it.
  Status failure() const;

  // As recvmsg(2) and sendmsg(2) of a socket that does not block. errno: EAGAIN, ECONNRESET, and
  // EPROTO, which failure() explains. They take all that is there, or all the room.
  ssize_t receive(const std::array<MutableBytes, 2>& room);
  ssize_t send(std::span<const iovec> parts);

 private:
  std::size_t receive_into(MutableBytes room, int* result);
  Bytes gather(std::span<const iovec> parts, std::size_t offset);
  int explain(int result);  ///< SSL_get_error; remembers a failure. mutex_ is held

  std::atomic<bool> is_ready_ = false;
  mutable std::mutex mutex_;  // a leaf, over all below
  SSL* const ssl_;
  Status failure_;
  std::vector<std::byte> gathered_;
};

}  // namespace kvsyncfs
