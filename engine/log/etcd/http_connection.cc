#include "engine/log/etcd/http_connection.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace kvsyncfs::etcd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using ErrorCode = beast::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

template <typename Stream>
class Connection final : public HttpConnection {
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;

 public:
  Connection(Clock& clock, HttpAddress address, asio::ssl::context* tls)
      : clock_(clock), address_(std::move(address)), stream_(make(context_, tls)) {}

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

  Result<HttpReply> post(std::string_view target, std::string_view body,
                         std::string_view authorization, std::uint64_t deadline_ns) override try {
    KVSYNCFS_TRY(send(target, body, authorization, deadline_ns));
    http::response_parser<http::string_body> parser;
    parser.body_limit(kBodyMax);
    KVSYNCFS_TRY(run(deadline_ns, [&](auto done) {
      http::async_read(stream_, buffer_, parser,
                       [done = std::move(done)](ErrorCode e, std::size_t) mutable { done(e); });
    }));
    auto reply = parser.release();
    if (!reply.keep_alive()) usable_ = false;
    return HttpReply{static_cast<int>(reply.result_int()), std::move(reply.body())};
  } catch (const std::bad_alloc&) {
    return Error(Code::kNoMemory, "etcd: an answer");
  }

  bool usable() const override { return usable_; }

  Status start_stream(std::string_view target, std::string_view body,
                      std::string_view authorization, std::uint64_t deadline_ns) override {
    KVSYNCFS_TRY(send(target, body, authorization, deadline_ns));
    stream_parser_.emplace();
    stream_parser_->body_limit(boost::none);  // endless; what is not taken yet is bounded below
    beast::get_lowest_layer(stream_).expires_never();
    return {};
  }

  Result<std::string> next_line(int* status, std::uint64_t deadline_ns) override try {
    for (;;) {
      if (!reading_) {
        std::string& body = stream_parser_->get().body();
        const bool head = stream_parser_->is_header_done();
        *status = head ? static_cast<int>(stream_parser_->get().result_int()) : 0;
        const std::size_t end = head && *status == 200 ? body.find('\n', searched_) : body.npos;
        if (end != body.npos) {
          std::string line = body.substr(0, end);
          body.erase(0, end + 1);
          searched_ = 0;
          return line;
        }
        searched_ = body.size();
        if (body.size() > kBodyMax) return Error(Code::kCorrupt, "etcd: an endless line");
        if (stream_error_) return fault(stream_error_);
        if (stream_parser_->is_done())
          return *status == 200 ? Result<std::string>(Error(Code::kIo, "etcd: the stream ended"))
                                : Result<std::string>(std::move(body));
        reading_ = true;
        http::async_read_some(stream_, buffer_, *stream_parser_,
                              [this](ErrorCode error, std::size_t) {
                                reading_ = false;
                                stream_error_ = error;
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
    return Error(Code::kNoMemory, "etcd: a stream");
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
    else if (error.category() == http::make_error_code(http::error::bad_version).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message)
      code = Code::kCorrupt;
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

  Status send(std::string_view target, std::string_view body, std::string_view authorization,
              std::uint64_t deadline_ns) {
    http::request<http::span_body<const char>> request;
    request.version(11);
    request.method(http::verb::post);
    request.target(beast::string_view(target.data(), target.size()));
    request.set(http::field::host, fmt::format("{}:{}", address_.host, address_.port));
    request.set(http::field::content_type, "application/json");
    if (!authorization.empty())
      request.set(http::field::authorization,
                  beast::string_view(authorization.data(), authorization.size()));
    request.body() = {body.data(), body.size()};
    request.prepare_payload();
    return run(deadline_ns, [&](auto done) {
      http::async_write(stream_, request,
                        [done = std::move(done)](ErrorCode e, std::size_t) mutable { done(e); });
    });
  }

  Clock& clock_;
  const HttpAddress address_;
  asio::io_context context_{1};
  Stream stream_;
  beast::flat_buffer buffer_;
  bool usable_ = true;

  std::optional<http::response_parser<http::string_body>> stream_parser_;
  bool reading_ = false;
  ErrorCode stream_error_;
  std::size_t searched_ = 0;  // bytes of the body without a line's end
};

template <typename Stream>
Result<std::unique_ptr<HttpConnection>> open(Clock& clock, const HttpAddress& address,
                                             asio::ssl::context* tls, std::uint64_t deadline_ns) {
  auto connection = std::make_unique<Connection<Stream>>(clock, address, tls);
  KVSYNCFS_TRY(connection->open(deadline_ns));
  return std::unique_ptr<HttpConnection>(std::move(connection));
}

}  // namespace

Result<std::unique_ptr<HttpConnection>> HttpConnection::connect(Clock& clock,
                                                                const HttpAddress& address,
                                                                asio::ssl::context* tls,
                                                                std::uint64_t deadline_ns) try {
  return tls != nullptr ? open<TlsStream>(clock, address, tls, deadline_ns)
                        : open<PlainStream>(clock, address, tls, deadline_ns);
} catch (const std::exception& error) {  // Asio's and OpenSSL's constructors
  return Error(Code::kIo, fmt::format("etcd {}: {}", address.host, error.what()));
}

}  // namespace kvsyncfs::etcd
