// One HTTP/2 connection to one etcd endpoint that carries gRPC, plain or TLS: one call at a time,
// or one stream of answers. Every wait ends at a deadline.
//
// A call that fails leaves the connection useless: drop it. Answers are bounded (kAnswerMax),
// whoever sends them. Thread: one at a time.
//
// Errors: kTimeout (no answer in time), kIo (the connection is lost or was refused), kAccess (the
// certificate is refused), kCorrupt (not gRPC, or too large), kNoMemory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/env/clock.h"

namespace boost::asio::ssl {
class context;
}

namespace kvsyncfs::etcd {

inline constexpr std::uint64_t kAnswerMax = 128u << 20;  ///< bytes

struct GrpcAddress {
  std::string ip;    ///< numeric
  std::string host;  ///< as the user wrote it: authority, name in the certificate
  std::uint16_t port = 0;
};

struct GrpcReply {
  std::int64_t status = 0;  ///< gRPC's; 0: `message` is the answer, else what etcd says of it
  std::string message;
};

class GrpcConnection {
 public:
  virtual ~GrpcConnection() = default;

  /// `tls` null: plain; it outlives the connection.
  static Result<std::unique_ptr<GrpcConnection>> connect(Clock& clock, const GrpcAddress& address,
                                                         boost::asio::ssl::context* tls,
                                                         std::uint64_t deadline_ns);

  /// `method`: "/etcdserverpb.KV/Txn". `token` may be empty.
  virtual Result<GrpcReply> call(std::string_view method, std::string_view message,
                                 std::string_view token, std::uint64_t deadline_ns) = 0;

  virtual bool usable() const = 0;  ///< for another call()

  /// A request whose answers have no end; after it only next_message().
  virtual Status start_stream(std::string_view method, std::string_view message,
                              std::string_view token, std::uint64_t deadline_ns) = 0;
  /// The next answer, or the status with which the stream ended. kTimeout leaves it usable.
  virtual Result<GrpcReply> next_message(std::uint64_t deadline_ns) = 0;
};

}  // namespace kvsyncfs::etcd
