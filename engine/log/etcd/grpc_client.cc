#include "engine/log/etcd/grpc_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ssl.hpp>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/log/etcd/grpc_connection.h"
#include "engine/log/etcd/grpc_messages.h"
#include "engine/log/etcd/resolver.h"

namespace kvsyncfs::etcd {
namespace {

namespace ssl = boost::asio::ssl;
constexpr std::uint64_t kPauseNs = 50'000'000;  // when no endpoint answers
constexpr std::size_t kIdleMax = 8;             // connections kept

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};

Result<Endpoint> parse_endpoint(std::string_view text) {
  const Error bad(Code::kInvalid, fmt::format("etcd endpoint '{}'", text));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Endpoint endpoint{std::string(host), 0};
  const auto [end, error] =
      std::from_chars(port.data(), port.data() + port.size(), endpoint.port, 10);
  if (host.empty() || error != std::errc{} || end != port.data() + port.size() ||
      endpoint.port == 0)
    return bad;
  return endpoint;
}

struct Connected {
  std::unique_ptr<GrpcConnection> connection;
  std::size_t endpoint = 0;
};

enum class Kind { kRead, kChange };

class Client final : public GrpcClient {
 public:
  Client(Clock& clock, GrpcOptions options, std::vector<Endpoint> endpoints,
         std::unique_ptr<ssl::context> tls)
      : clock_(clock),
        options_(std::move(options)),
        endpoints_(std::move(endpoints)),
        tls_(std::move(tls)),
        resolver_(clock) {}

  Result<RangeReply> range(const Range& request, std::uint64_t deadline_ns) override {
    return call(Kind::kRead, "/etcdserverpb.KV/Range", encode_range(request), deadline_ns,
                parse_range);
  }
  Result<TxnReply> txn(const Txn& request, std::uint64_t deadline_ns) override {
    return call(is_read(request) ? Kind::kRead : Kind::kChange, "/etcdserverpb.KV/Txn",
                encode_txn(request), deadline_ns,
                [&](std::string_view text) { return parse_txn(text, request); });
  }
  Result<Lease> grant_lease(std::int64_t ttl_s, std::uint64_t deadline_ns) override {
    return call(Kind::kChange, "/etcdserverpb.Lease/LeaseGrant", encode_grant(ttl_s), deadline_ns,
                parse_grant);
  }
  Result<Lease> keep_alive(std::int64_t lease, std::uint64_t deadline_ns) override {
    return call(Kind::kRead, "/etcdserverpb.Lease/LeaseKeepAlive", encode_lease(lease), deadline_ns,
                parse_keep_alive);
  }
  Status revoke_lease(std::int64_t lease, std::uint64_t deadline_ns) override {
    return call(Kind::kChange, "/etcdserverpb.Lease/LeaseRevoke", encode_lease(lease), deadline_ns,
                parse_empty);
  }
  Status compact(std::int64_t revision, std::uint64_t deadline_ns) override {
    return call(Kind::kChange, "/etcdserverpb.KV/Compact", encode_compact(revision), deadline_ns,
                parse_empty);
  }
  Result<std::unique_ptr<EtcdWatch>> watch(const WatchRequest& request,
                                           std::uint64_t deadline_ns) override;
  GrpcCounters counters() const override {
    std::lock_guard lock(mutex_);
    return counters_;
  }
  void stop() override {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
  }

 private:
  static bool is_read(const Txn& txn) {
    const auto reads = [](const std::vector<Operation>& branch) {
      return std::all_of(branch.begin(), branch.end(), [](const Operation& operation) {
        return std::holds_alternative<Range>(operation);
      });
    };
    return reads(txn.success) && reads(txn.failure);
  }

  /// What one try came to.
  struct Try {
    Error error;
    bool sent = false;           ///< etcd may have acted on it
    bool token_expired = false;  ///< it did not, and wants another login
  };

  template <typename Parse>
  auto call(Kind kind, std::string_view method, const std::string& body, std::uint64_t deadline_ns,
            Parse parse) -> decltype(parse(std::string_view{}));
  std::uint64_t try_deadline(std::uint64_t deadline_ns) const {
    return std::min(deadline_ns, clock_.boot_ns() + options_.request_timeout_ns);
  }
  Result<Connected> connect(std::uint64_t deadline_ns);
  void keep(Connected connected);
  void pass_over(std::size_t endpoint);
  std::optional<GrpcReply> exchange(std::string_view method, const std::string& body,
                                    std::uint64_t deadline_ns, Try* result);
  Result<std::string> token(std::uint64_t deadline_ns);
  void forget_token(const std::string& token);
  bool pause(std::uint64_t deadline_ns);
  void count_bad(const Error& error);

  Clock& clock_;
  const GrpcOptions options_;
  const std::vector<Endpoint> endpoints_;
  const std::unique_ptr<ssl::context> tls_;
  Resolver resolver_;

  mutable std::mutex mutex_;  // leaf
  std::condition_variable stopping_;
  bool stopped_ = false;
  std::vector<Connected> idle_;
  std::size_t preferred_ = 0;  // endpoint
  std::string token_;
  GrpcCounters counters_;
};

/// Until there is an answer that counts, or a change that may have been carried out, or no time.
template <typename Parse>
auto Client::call(Kind kind, std::string_view method, const std::string& body,
                  std::uint64_t deadline_ns, Parse parse) -> decltype(parse(std::string_view{})) {
  Error last(Code::kTimeout, "etcd");
  std::size_t logins = 0;
  for (std::size_t tries = 1; clock_.boot_ns() < deadline_ns; ++tries) {
    Try result;
    if (const auto reply = exchange(method, body, deadline_ns, &result)) {
      auto parsed = parse(reply->message);
      if (parsed || parsed.error().code != Code::kCorrupt) return parsed;
      result.error = parsed.error();
      count_bad(result.error);
    }
    last = result.error;
    if (result.token_expired && logins++ == 0) continue;
    // Another endpoint may do better with what this one could not answer.
    const bool unclear = last.code == Code::kTimeout || last.code == Code::kIo ||
                         (last.code == Code::kCorrupt && tries < endpoints_.size());
    if (!unclear || (kind == Kind::kChange && result.sent)) break;
    if (tries % endpoints_.size() == 0 && !pause(deadline_ns))
      return Error(Code::kShutdown, "etcd: the client was stopped");
  }
  if (last.code == Code::kIo) last.code = Code::kTimeout;
  return last;
}

/// Nothing: `result` tells why.
std::optional<GrpcReply> Client::exchange(std::string_view method, const std::string& body,
                                          std::uint64_t deadline_ns, Try* result) {
  const std::uint64_t until_ns = try_deadline(deadline_ns);
  const auto login = token(until_ns);
  if (!login) {
    result->error = login.error();
    return std::nullopt;
  }
  auto connected = connect(until_ns);
  if (!connected) {
    result->error = connected.error();
    return std::nullopt;
  }
  result->sent = true;
  auto reply = connected->connection->call(method, body, *login, until_ns);
  if (!reply) {
    result->error = reply.error();
    count_bad(result->error);
    pass_over(connected->endpoint);
    return std::nullopt;
  }
  const std::size_t endpoint = connected->endpoint;
  if (reply->status == 0) {
    keep(std::move(*connected));
    return std::move(*reply);
  }
  result->error = refusal(reply->status, reply->message, &result->token_expired);
  count_bad(result->error);
  if (result->token_expired) forget_token(*login);
  if (result->error.code == Code::kCorrupt || result->error.code == Code::kTimeout)
    pass_over(endpoint);
  else
    keep(std::move(*connected));
  return std::nullopt;
}

/// One that is idle, or a new one, to whichever endpoint takes it.
Result<Connected> Client::connect(std::uint64_t deadline_ns) {
  std::size_t first = 0;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return Error(Code::kShutdown, "etcd: the client was stopped");
    ++counters_.requests;
    if (!idle_.empty()) {
      Connected connected = std::move(idle_.back());
      idle_.pop_back();
      return connected;
    }
    first = preferred_;
    ++counters_.connections;
  }
  const Endpoint& endpoint = endpoints_[first];
  auto ip = resolver_.resolve(endpoint.host, deadline_ns);
  auto made = ip ? GrpcConnection::connect(clock_, {*ip, endpoint.host, endpoint.port}, tls_.get(),
                                           deadline_ns)
                 : Result<std::unique_ptr<GrpcConnection>>(ip.error());
  if (made) return Connected{std::move(*made), first};
  pass_over(first);
  return made.error();
}

void Client::keep(Connected connected) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax && connected.endpoint == preferred_ && connected.connection->usable())
    idle_.push_back(std::move(connected));
}

/// Its idle connections are no better.
void Client::pass_over(std::size_t endpoint) {
  std::vector<Connected> dropped;
  std::lock_guard lock(mutex_);
  for (Connected& connected : idle_)
    if (connected.endpoint == endpoint) dropped.push_back(std::move(connected));
  std::erase_if(idle_, [](const Connected& connected) { return !connected.connection; });
  if (endpoint != preferred_ || endpoints_.size() == 1) return;
  preferred_ = (preferred_ + 1) % endpoints_.size();
  ++counters_.failovers;
}

/// Empty where there is no user.
Result<std::string> Client::token(std::uint64_t deadline_ns) {
  if (options_.user.empty()) return std::string();
  {
    std::lock_guard lock(mutex_);
    if (!token_.empty()) return token_;
  }
  KVSYNCFS_ASSIGN(Connected connected, connect(deadline_ns));
  const auto reply =
      connected.connection->call("/etcdserverpb.Auth/Authenticate",
                                 encode_login(options_.user, options_.password), {}, deadline_ns);
  if (!reply) {
    pass_over(connected.endpoint);
    return reply.error();
  }
  bool ignored = false;
  if (reply->status != 0) {
    const Error error = refusal(reply->status, reply->message, &ignored);
    if (error.code == Code::kTimeout) pass_over(connected.endpoint);
    return error;
  }
  KVSYNCFS_ASSIGN(const std::string token, parse_login(reply->message));
  keep(std::move(connected));
  std::lock_guard lock(mutex_);
  ++counters_.logins;
  return token_ = token;
}

void Client::forget_token(const std::string& token) {
  std::lock_guard lock(mutex_);
  if (token_ == token) token_.clear();
}

/// False: the client was stopped.
bool Client::pause(std::uint64_t deadline_ns) {
  const std::uint64_t now_ns = clock_.boot_ns();
  std::unique_lock lock(mutex_);
  if (deadline_ns > now_ns)
    stopping_.wait_for(lock, std::chrono::nanoseconds(std::min(deadline_ns - now_ns, kPauseNs)),
                       [this] { return stopped_; });
  return !stopped_;
}

void Client::count_bad(const Error& error) {
  if (error.code != Code::kCorrupt) return;
  std::lock_guard lock(mutex_);
  ++counters_.bad_answers;
}

class GrpcWatch final : public EtcdWatch {
 public:
  explicit GrpcWatch(std::unique_ptr<GrpcConnection> connection)
      : connection_(std::move(connection)) {}

  /// Until etcd says that the watch stands, or what it has against it.
  Result<WatchBatch> message(std::uint64_t deadline_ns, bool* created) {
    KVSYNCFS_ASSIGN(const GrpcReply reply, connection_->next_message(deadline_ns));
    bool token_expired = false;
    if (reply.status != 0) return refusal(reply.status, reply.message, &token_expired);
    return parse_watch(reply.message, created);
  }

  Result<WatchBatch> next(std::uint64_t deadline_ns) override {
    for (;;) {
      bool created = false;
      KVSYNCFS_ASSIGN(WatchBatch batch, message(deadline_ns, &created));
      if (!batch.puts.empty()) return batch;
    }
  }

 private:
  std::unique_ptr<GrpcConnection> connection_;
};

/// Never from the idle connections: its own for as long as it stands.
Result<std::unique_ptr<EtcdWatch>> Client::watch(const WatchRequest& request,
                                                 std::uint64_t deadline_ns) {
  KVSYNCFS_ASSIGN(const std::string login, token(deadline_ns));
  KVSYNCFS_ASSIGN(Connected connected, connect(deadline_ns));
  const std::size_t endpoint = connected.endpoint;
  const Status started = connected.connection->start_stream(
      "/etcdserverpb.Watch/Watch", encode_watch(request), login, deadline_ns);
  if (!started) {
    pass_over(endpoint);
    return started.error();
  }
  auto watch = std::make_unique<GrpcWatch>(std::move(connected.connection));
  bool created = false;
  const auto first = watch->message(deadline_ns, &created);
  if (first && created) return std::unique_ptr<EtcdWatch>(std::move(watch));
  Error error = first ? Error(Code::kCorrupt, "etcd: a watch that does not begin") : first.error();
  if (error.code == Code::kAccess) forget_token(login);
  if (error.code == Code::kIo) error.code = Code::kTimeout;
  if (error.code != Code::kStale) pass_over(endpoint);
  count_bad(error);
  return error;
}

}  // namespace

Result<std::unique_ptr<GrpcClient>> GrpcClient::make(Clock& clock, GrpcOptions options) try {
  std::vector<Endpoint> endpoints;
  for (const std::string& text : options.endpoints) {
    KVSYNCFS_ASSIGN(Endpoint endpoint, parse_endpoint(text));
    endpoints.push_back(std::move(endpoint));
  }
  if (endpoints.empty()) return Error(Code::kInvalid, "no etcd endpoint");
  std::unique_ptr<ssl::context> tls;
  if (options.tls) {
    tls = std::make_unique<ssl::context>(ssl::context::tls_client);
    tls->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                     ssl::context::no_tlsv1_1);
    tls->set_verify_mode(ssl::verify_peer);
    if (options.ca_file.empty())
      tls->set_default_verify_paths();
    else
      tls->load_verify_file(options.ca_file);
    if (!options.certificate_file.empty()) {
      tls->use_certificate_chain_file(options.certificate_file);
      tls->use_private_key_file(options.key_file, ssl::context::pem);
    }
  }
  return std::unique_ptr<GrpcClient>(
      std::make_unique<Client>(clock, std::move(options), std::move(endpoints), std::move(tls)));
} catch (const boost::system::system_error& error) {
  return Error(Code::kAccess, fmt::format("etcd certificates: {}", error.what()));
}

}  // namespace kvsyncfs::etcd
