// One HTTP/1.1 connection to one etcd endpoint, plain or TLS. Every wait ends at a deadline.
//
// A call that fails leaves the connection useless: drop it. Bodies are bounded (kBodyMax), whoever
// sends them. Thread: one at a time.
//
// Errors: kTimeout (no answer in time), kIo (the connection is lost or was refused), kAccess (the
// certificate is refused), kCorrupt (not HTTP, or too large), kNoMemory.
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

inline constexpr std::uint64_t kBodyMax = 128u << 20;  ///< bytes of an answer

struct HttpAddress {
  std::string ip;    ///< numeric
  std::string host;  ///< as the user wrote it: Host header, name in the certificate
  std::uint16_t port = 0;
};

struct HttpReply {
  int status = 0;
  std::string body;
};

class HttpConnection {
 public:
  virtual ~HttpConnection() = default;

  /// `tls` null: plain; it outlives the connection.
  static Result<std::unique_ptr<HttpConnection>> connect(Clock& clock, const HttpAddress& address,
                                                         boost::asio::ssl::context* tls,
                                                         std::uint64_t deadline_ns);

  /// `authorization` may be empty.
  virtual Result<HttpReply> post(std::string_view target, std::string_view body,
                                 std::string_view authorization, std::uint64_t deadline_ns) = 0;

  virtual bool usable() const = 0;  ///< for another post()

  /// A request whose answer is an endless stream of lines; after it only next_line().
  virtual Status start_stream(std::string_view target, std::string_view body,
                              std::string_view authorization, std::uint64_t deadline_ns) = 0;
  /// The next line, without its end. kTimeout leaves the stream usable. Of an answer that is not
  /// 200 the whole body is the line, and `status` tells.
  virtual Result<std::string> next_line(int* status, std::uint64_t deadline_ns) = 0;
};

}  // namespace kvsyncfs::etcd
