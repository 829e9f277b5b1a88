// The client against servers that misbehave: every call ends in time, with one clear error.
#include "engine/log/etcd/grpc_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <thread>

#include "engine/env/clock.h"

namespace kvsyncfs::etcd {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr std::uint64_t kSecond = 1'000'000'000;

class TestClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t boot_ns() override {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
};

/// Answers every request on every connection with the same bytes, or, with none, never.
class FakeServer {
 public:
  explicit FakeServer(std::string answer) : answer_(std::move(answer)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeServer() {
    stopping_ = true;
    asio::io_context context;
    tcp::socket wake(context);
    boost::system::error_code ignored;
    wake.connect(acceptor_.local_endpoint(), ignored);
    thread_.join();
  }
  std::string endpoint() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  int requests() const { return requests_; }

 private:
  void serve() {
    std::vector<std::unique_ptr<tcp::socket>> sockets;
    while (!stopping_) {
      auto socket = std::make_unique<tcp::socket>(context_);
      boost::system::error_code error;
      acceptor_.accept(*socket, error);
      if (stopping_ || error) return;
      asio::streambuf buffer;
      asio::read_until(*socket, buffer, "\r\n\r\n", error);
      ++requests_;
      if (!answer_.empty()) asio::write(*socket, asio::buffer(answer_), error);
      sockets.push_back(std::move(socket));
      if (!answer_.empty()) sockets.clear();
    }
  }

  const std::string answer_;
  asio::io_context context_;
  tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::atomic<bool> stopping_ = false;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

std::string frame(char type, char flags, const std::string& payload) {
  constexpr char kHeader[] = {0, 0, 0, 0};
  const char stream = type == 4 ? '\0' : '\1';
  return std::string(kHeader, 1) + static_cast<char>(payload.size() >> 8) +
         static_cast<char>(payload.size()) + type + flags + std::string(kHeader, 3) + stream +
         payload;
}

/// The first call of a connection is answered with these bytes in a message, and this status.
std::string grpc(const std::string& message, const std::string& status = "0") {
  constexpr char kSettings = 4, kHeaders = 1, kData = 0, kEndHeaders = 4, kEndBoth = 5;
  std::string head(5, '\0');
  head[4] = static_cast<char>(message.size());
  const std::string name = "grpc-status";
  const std::string trailer = std::string(1, '\0') + static_cast<char>(name.size()) + name +
                              static_cast<char>(status.size()) + status;
  return frame(kSettings, 0, "") + frame(kHeaders, kEndHeaders, "\x88") +
         frame(kData, 0, head + message) + frame(kHeaders, kEndBoth, trailer);
}

class GrpcClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<GrpcClient> client(std::vector<std::string> endpoints) {
    GrpcOptions options;
    options.endpoints = std::move(endpoints);
    options.request_timeout_ns = kSecond / 5;
    auto made = GrpcClient::make(clock_, options);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  std::uint64_t in(std::uint64_t ns) { return clock_.boot_ns() + ns; }
  TestClock clock_;
  const std::string good_ = grpc("\x0a\x02\x18\x04");  // a header with revision 4
};

TEST_F(GrpcClientTest, AnswersThatMakeNoSenseAreOneClearErrorAndCounted) {
  for (const std::string& answer :
       {std::string("nonsense\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\n\r\n<html>"),
        grpc("<html>"), grpc(""), grpc("\x0a\x02\x18\x04", "teapot"),
        frame(4, 0, "") + frame(1, 5, "\x8d")}) {
    FakeServer server(answer);
    const auto etcd = client({server.endpoint()});
    const auto reply = etcd->range({"a", {}}, in(5 * kSecond));
    ASSERT_FALSE(reply) << answer;
    EXPECT_EQ(reply.error().code, Code::kCorrupt) << answer << describe(reply.error());
    EXPECT_EQ(etcd->counters().bad_answers, 1u);
  }
}

TEST_F(GrpcClientTest, AServerThatSaysNothingCostsNoMoreThanTheDeadline) {
  FakeServer server("");
  const auto etcd = client({server.endpoint()});
  const std::uint64_t begun_ns = clock_.boot_ns();
  const auto reply = etcd->range({"a", {}}, in(kSecond / 2));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kTimeout);
  EXPECT_LT(clock_.boot_ns() - begun_ns, kSecond);
}

TEST_F(GrpcClientTest, AReadGoesOnAtTheNextEndpoint) {
  FakeServer silent(""), broken("nonsense\r\n\r\n"), good(good_);
  const auto etcd = client({"127.0.0.1:1", silent.endpoint(), broken.endpoint(), good.endpoint()});
  const auto reply = etcd->range({"a", {}}, in(5 * kSecond));
  ASSERT_TRUE(reply) << describe(reply.error());
  EXPECT_EQ(reply->revision, 4);
  EXPECT_EQ(etcd->counters().failovers, 3u);
}

TEST_F(GrpcClientTest, AChangeThatMayHaveHappenedIsNotSentAgain) {
  FakeServer silent(""), good(good_);
  const auto etcd = client({silent.endpoint(), good.endpoint()});
  Txn txn;
  txn.success = {Put{"k", "v"}};
  const auto reply = etcd->txn(txn, in(2 * kSecond));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kTimeout);
  EXPECT_EQ(silent.requests(), 1);
  EXPECT_EQ(good.requests(), 0);
}

TEST_F(GrpcClientTest, AChangeThatWasNotSentGoesToTheNextEndpoint) {
  FakeServer good(grpc(std::string("\x0a\x02\x18\x04\x10\x01\x1a\x02\x12\x00", 10)));
  const auto etcd = client({"127.0.0.1:1", good.endpoint()});
  Txn txn;
  txn.success = {Put{"k", "v"}};
  EXPECT_TRUE(etcd->txn(txn, in(2 * kSecond)));
}

TEST_F(GrpcClientTest, AStoppedClientRefuses) {
  const auto etcd = client({"127.0.0.1:1"});
  etcd->stop();
  const auto reply = etcd->range({"a", {}}, in(5 * kSecond));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kShutdown);
}

TEST_F(GrpcClientTest, EndpointsThatAreNoneAreInvalid) {
  for (const char* endpoint : {"", "host", ":2379", "host:", "host:0", "host:x", "host:70000"}) {
    GrpcOptions options;
    options.endpoints = {endpoint};
    const auto made = GrpcClient::make(clock_, options);
    ASSERT_FALSE(made) << endpoint;
    EXPECT_EQ(made.error().code, Code::kInvalid);
  }
  EXPECT_FALSE(GrpcClient::make(clock_, {}));
}

}  // namespace
}  // namespace kvsyncfs::etcd
