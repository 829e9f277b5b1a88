#include "engine/log/etcd/grpc_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <cerrno>
#include <chrono>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/log/etcd/http2_session.h"

namespace kvsyncfs::etcd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using ErrorCode = beast::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kSendTimeoutNs = kSecondNs;  // what a stream has to say, a few bytes
constexpr std::uint64_t kPongDelayNs = kSecondNs;
constexpr std::uint64_t kWaitMaxNs = 60 * kSecondNs;  // bounds a wait whatever is asked

template <typename Stream>
class Connection final : public GrpcConnection {
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;

 public:
  Connection(Clock& clock, GrpcAddress address, asio::ssl::context* tls)
      : clock_(clock),
        address_(std::move(address)),
        authority_(fmt::format("{}:{}", address_.host, address_.port)),
        stream_(make(context_, tls)) {}

  ~Connection() override {
    ErrorCode ignored;
    beast::get_lowest_layer(stream_).socket().close(ignored);
    context_.restart();
    context_.poll();  // what was under way ends with the socket, before the buffers that it uses
  }

  Status open(std::uint64_t deadline_ns) {
    ErrorCode error;
    const auto ip = asio::ip::make_address(address_.ip, error);
    if (error) return fault(error);
    auto& socket = beast::get_lowest_layer(stream_);
    KVSYNCFS_TRY(run(deadline_ns, [&](auto done) {
      socket.async_connect(asio::ip::tcp::endpoint(ip, address_.port), std::move(done));
    }));
    socket.socket().set_option(asio::ip::tcp::no_delay(true), error);
    if (error) return fault(error);
    if constexpr (kTls) {
      static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
      if (SSL_set_alpn_protos(stream_.native_handle(), kHttp2, sizeof kHttp2) != 0)
        return Error(Code::kIo, "etcd " + address_.host + ": TLS");
      stream_.set_verify_callback(asio::ssl::host_name_verification(address_.host), error);
      if (!error && !is_numeric(address_.host) &&
          SSL_set_tlsext_host_name(stream_.native_handle(), address_.host.c_str()) != 1)
        return Error(Code::kIo, "etcd " + address_.host + ": TLS");
      if (error) return fault(error);
      return run(deadline_ns, [&](auto done) {
        stream_.async_handshake(asio::ssl::stream_base::client, std::move(done));
      });
    }
    return {};
  }

  Result<GrpcReply> call(std::string_view method, std::string_view message, std::string_view token,
                         std::uint64_t deadline_ns) override try {
    KVSYNCFS_TRY(start(method, message, token, false));
    while (!session_.call_has_ended()) {
      KVSYNCFS_TRY(send(deadline_ns));
      if (session_.call_has_ended()) break;
      KVSYNCFS_ASSIGN(const std::size_t size, read_some(deadline_ns));
      KVSYNCFS_TRY(feed(size));
    }
    KVSYNCFS_TRY(send(deadline_ns));  // what HTTP/2 wants to say of what came
    return ended(true);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }

  bool usable() const override { return usable_ && session_.usable(); }

  Status start_stream(std::string_view method, std::string_view message, std::string_view token,
                      std::uint64_t deadline_ns) override try {
    is_stream_ = true;
    stream_request_ = message;
    KVSYNCFS_TRY(start(method, stream_request_, token, true));
    return send(deadline_ns);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }

  Result<GrpcReply> next_message(std::uint64_t deadline_ns) override try {
    GrpcReply reply;
    for (;;) {
      if (!reading_) {
        if (input_size_ > 0) KVSYNCFS_TRY(feed(std::exchange(input_size_, 0)));
        KVSYNCFS_ASSIGN(const bool there, session_.take_message(&reply.message));
        if (there) return reply;
        if (stream_error_) return fault(stream_error_);
        if (session_.call_has_ended()) return ended(false);
        KVSYNCFS_TRY(send(clock_.boot_ns() + kSendTimeoutNs));
        beast::get_lowest_layer(stream_).expires_never();
        reading_ = true;
        stream_.async_read_some(asio::buffer(input_), [this](ErrorCode error, std::size_t size) {
          reading_ = false;
          stream_error_ = error;
          input_size_ = size;
        });
      }
      // The read goes on over this call's end: nothing that comes is lost.
      const std::uint64_t now_ns = clock_.boot_ns();
      const std::uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
      context_.restart();
      while (reading_ && context_.run_one_for(std::chrono::nanoseconds(wait_ns)) > 0) {
      }
      if (reading_) return Error(Code::kTimeout, "etcd: nothing came");
    }
  } catch (const std::bad_alloc&) {
    return no_memory();
  }

 private:
  static Stream make(asio::io_context& context, asio::ssl::context* tls) {
    if constexpr (kTls)
      return Stream(context, *tls);
    else
      return Stream(context);
  }

  static bool is_numeric(const std::string& host) {
    ErrorCode error;
    asio::ip::make_address(host, error);
    return !error;
  }

  Error fault(ErrorCode error) const {
    Code code = Code::kIo;
    if (error == beast::error::timeout || error == asio::error::operation_aborted)
      code = Code::kTimeout;
    else if (error.category() == asio::error::get_ssl_category())
      code = Code::kAccess;
    return Error(code,
                 fmt::format("etcd {}:{}: {}", address_.host, address_.port, error.message()));
  }

  /// Starts one operation and waits for its end; `begin` gets the handler.
  template <typename Begin>
  Status run(std::uint64_t deadline_ns, Begin begin) {
    const std::uint64_t now_ns = clock_.boot_ns();
    if (now_ns >= deadline_ns || !usable_) return fault(beast::error::timeout);
    beast::get_lowest_layer(stream_).expires_after(std::chrono::nanoseconds(deadline_ns - now_ns));
    ErrorCode result = asio::error::operation_aborted;
    begin([&result](ErrorCode error) { result = error; });
    context_.restart();
    context_.run();
    if (!result) return {};
    usable_ = false;
    return fault(result);
  }

  static Error no_memory() { return Error(Code::kNoMemory, "etcd: an answer"); }

  Status start(std::string_view method, std::string_view message, std::string_view token,
               bool is_stream) {
    if (!usable()) return fault(beast::error::timeout);
    return session_.start({kTls ? "https" : "http", authority_, method, token, message, is_stream});
  }

  /// Whatever the session has to say. etcd's server pings with each request that it reads, to
  /// measure the line, unless it still waits for an answer: one that comes later saves both sides
  /// packets and changes of threads at each call. A stream may have nothing to say later.
  Status send(std::uint64_t deadline_ns) {
    KVSYNCFS_ASSIGN(std::string output, session_.take_output());
    if (session_.has_pongs()) {
      const std::uint64_t now_ns = clock_.boot_ns();
      if (pinged_ns_ == 0) pinged_ns_ = now_ns;
      if (is_stream_ || now_ns - pinged_ns_ >= kPongDelayNs) {
        output = session_.take_pongs() + output;
        pinged_ns_ = 0;
      }
    }
    return output.empty() ? Status{} : write(output, deadline_ns);
  }

  /// A socket without TLS does without Asio's reactor and its timers: a dozen system calls less a
  /// call.
  Status write(std::string_view output, std::uint64_t deadline_ns) {
    if constexpr (kTls)
      return run(deadline_ns, [&](auto done) {
        asio::async_write(stream_, asio::buffer(output),
                          [done = std::move(done)](ErrorCode e, std::size_t) mutable { done(e); });
      });
    while (!output.empty()) {
      if (!usable_) return fault(beast::error::timeout);
      const ssize_t sent =
          ::send(descriptor(), output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0)
        output.remove_prefix(static_cast<std::size_t>(sent));
      else
        KVSYNCFS_TRY(wait_for(POLLOUT, deadline_ns));
    }
    return {};
  }

  /// Into input_; at least one byte.
  Result<std::size_t> read_some(std::uint64_t deadline_ns) {
    if constexpr (kTls) {
      std::size_t size = 0;
      KVSYNCFS_TRY(run(deadline_ns, [&](auto done) {
        stream_.async_read_some(asio::buffer(input_), [&size, done = std::move(done)](
                                                          ErrorCode e, std::size_t n) mutable {
          size = n;
          done(e);
        });
      }));
      return size;
    }
    for (errno = EAGAIN;;) {
      KVSYNCFS_TRY(wait_for(POLLIN, deadline_ns));
      const ssize_t size = ::recv(descriptor(), input_.data(), input_.size(), MSG_DONTWAIT);
      if (size > 0) return static_cast<std::size_t>(size);
      if (size == 0) return lost(asio::error::eof);
    }
  }

  /// After a call of the socket that failed with `errno`: until another one is worth it.
  Status wait_for(short event, std::uint64_t deadline_ns) {
    for (;;) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return lost(ErrorCode(errno, boost::system::system_category()));
      const std::uint64_t now_ns = clock_.boot_ns();
      if (now_ns >= deadline_ns || !usable_) return lost(beast::error::timeout);
      const std::uint64_t wait_ns = std::min(deadline_ns - now_ns, kWaitMaxNs);
      const timespec wait{static_cast<time_t>(wait_ns / kSecondNs),
                          static_cast<long>(wait_ns % kSecondNs)};
      pollfd socket{descriptor(), event, 0};
      const int ready = ::ppoll(&socket, 1, &wait, nullptr);
      if (ready > 0) return {};
      if (ready == 0) errno = EAGAIN;
    }
  }

  int descriptor() { return beast::get_lowest_layer(stream_).socket().native_handle(); }

  Error lost(ErrorCode error) {
    usable_ = false;
    return fault(error);
  }

  Status feed(std::size_t size) {
    Status fed = session_.feed({input_.data(), size});
    if (!fed) usable_ = false;
    return fed;
  }

  /// `with_answer`: a call that went well has exactly one.
  Result<GrpcReply> ended(bool with_answer) {
    GrpcReply reply;
    auto status = session_.status(&reply.message);
    if (!status) {
      usable_ = false;
      return status.error();
    }
    reply.status = *status;
    if (reply.status != 0) return reply;
    if (!with_answer) return Error(Code::kIo, "etcd: the stream ended");
    KVSYNCFS_ASSIGN(const bool there, session_.take_message(&reply.message));
    if (!there) return Error(Code::kCorrupt, "etcd: a call without an answer");
    return reply;
  }

  Clock& clock_;
  const GrpcAddress address_;
  const std::string authority_;
  asio::io_context context_{1};
  Stream stream_;
  Http2Session session_;
  std::array<char, 64 << 10> input_;
  bool usable_ = true;
  std::uint64_t pinged_ns_ = 0;  // since when the session has pongs to send; 0: it has none

  std::string stream_request_;
  bool is_stream_ = false;
  bool reading_ = false;
  ErrorCode stream_error_;
  std::size_t input_size_ = 0;  // came by the last read, and is not fed yet
};

template <typename Stream>
Result<std::unique_ptr<GrpcConnection>> open(Clock& clock, const GrpcAddress& address,
                                             asio::ssl::context* tls, std::uint64_t deadline_ns) {
  auto connection = std::make_unique<Connection<Stream>>(clock, address, tls);
  KVSYNCFS_TRY(connection->open(deadline_ns));
  return std::unique_ptr<GrpcConnection>(std::move(connection));
}

}  // namespace

Result<std::unique_ptr<GrpcConnection>> GrpcConnection::connect(Clock& clock,
                                                                const GrpcAddress& address,
                                                                asio::ssl::context* tls,
                                                                std::uint64_t deadline_ns) try {
  return tls != nullptr ? open<TlsStream>(clock, address, tls, deadline_ns)
                        : open<PlainStream>(clock, address, tls, deadline_ns);
} catch (const std::exception& error) {  // Asio's and OpenSSL's constructors
  return Error(Code::kIo, fmt::format("etcd {}: {}", address.host, error.what()));
}

}  // namespace kvsyncfs::etcd
