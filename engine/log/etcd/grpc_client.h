// EtcdClient over gRPC, plain or TLS, to several endpoints.
//
// Connections are kept and used again, each by one call at a time. The endpoint that answered last
// is asked first; one that does not is passed over for the next. Reads are repeated until the
// deadline. A change is sent again only where it was not sent at all (no connection) or was refused
// for its token. With a user, the token is fetched when needed and again when etcd calls it
// invalid. Host names are looked up by Asio's resolver, which has a thread of its own; addresses
// are not. Thread: any. Memory: one answer of at most kAnswerMax bytes per call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/env/clock.h"
#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs::etcd {

struct GrpcOptions {
  std::vector<std::string> endpoints;  ///< "host:port", "[v6]:port"; all with TLS or none
  bool tls = false;
  std::string ca_file;                               ///< PEM; empty: the system's authorities
  std::string certificate_file, key_file;            ///< PEM; of this client, or empty
  std::string user, password;                        ///< empty: none
  std::uint64_t request_timeout_ns = 2'000'000'000;  ///< one try at one endpoint
};

struct GrpcCounters {  ///< only grow
  std::uint64_t requests = 0, connections = 0, failovers = 0, logins = 0;
  std::uint64_t bad_answers = 0;  ///< that made no sense
};

class GrpcClient : public EtcdClient {
 public:
  /// Connects nowhere yet. The clock outlives it, and it outlives its watches. Errors: kInvalid (an
  /// endpoint), kAccess (a certificate or key cannot be read).
  static Result<std::unique_ptr<GrpcClient>> make(Clock& clock, GrpcOptions options);
  virtual GrpcCounters counters() const = 0;
  /// Calls that wait between tries, and later ones, end with kShutdown.
  virtual void stop() = 0;
};

}  // namespace kvsyncfs::etcd
