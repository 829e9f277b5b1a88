// The client against servers that misbehave: every call ends in time, with one clear error.
#include "engine/log/etcd/gateway_client.h"

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

std::string http(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

class GatewayClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<GatewayClient> client(std::vector<std::string> endpoints) {
    GatewayOptions options;
    options.endpoints = std::move(endpoints);
    options.request_timeout_ns = kSecond / 5;
    auto made = GatewayClient::make(clock_, options);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  std::uint64_t in(std::uint64_t ns) { return clock_.boot_ns() + ns; }
  TestClock clock_;
  const std::string good_ = http("200 OK", R"({"header":{"revision":"4"}})");
};

TEST_F(GatewayClientTest, AnswersThatMakeNoSenseAreOneClearErrorAndCounted) {
  for (const std::string& answer :
       {std::string("nonsense\r\n\r\n"), http("200 OK", "<html>"), http("200 OK", "{}"),
        http("500 Oops", "teapot"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")}) {
    FakeServer server(answer);
    const auto gateway = client({server.endpoint()});
    const auto reply = gateway->range({"a", {}}, in(5 * kSecond));
    ASSERT_FALSE(reply) << answer;
    EXPECT_EQ(reply.error().code, Code::kCorrupt) << answer << describe(reply.error());
    EXPECT_EQ(gateway->counters().bad_answers, 1u);
  }
}

TEST_F(GatewayClientTest, AServerThatSaysNothingCostsNoMoreThanTheDeadline) {
  FakeServer server("");
  const auto gateway = client({server.endpoint()});
  const std::uint64_t begun_ns = clock_.boot_ns();
  const auto reply = gateway->range({"a", {}}, in(kSecond / 2));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kTimeout);
  EXPECT_LT(clock_.boot_ns() - begun_ns, kSecond);
}

TEST_F(GatewayClientTest, AReadGoesOnAtTheNextEndpoint) {
  FakeServer silent(""), broken("nonsense\r\n\r\n"), good(good_);
  const auto gateway =
      client({"127.0.0.1:1", silent.endpoint(), broken.endpoint(), good.endpoint()});
  const auto reply = gateway->range({"a", {}}, in(5 * kSecond));
  ASSERT_TRUE(reply) << describe(reply.error());
  EXPECT_EQ(reply->revision, 4);
  EXPECT_EQ(gateway->counters().failovers, 3u);
}

TEST_F(GatewayClientTest, AChangeThatMayHaveHappenedIsNotSentAgain) {
  FakeServer silent(""), good(good_);
  const auto gateway = client({silent.endpoint(), good.endpoint()});
  Txn txn;
  txn.success = {Put{"k", "v"}};
  const auto reply = gateway->txn(txn, in(2 * kSecond));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kTimeout);
  EXPECT_EQ(silent.requests(), 1);
  EXPECT_EQ(good.requests(), 0);
}

TEST_F(GatewayClientTest, AChangeThatWasNotSentGoesToTheNextEndpoint) {
  FakeServer good(
      http("200 OK", R"({"header":{"revision":"4"},"succeeded":true,"responses":[{}]})"));
  const auto gateway = client({"127.0.0.1:1", good.endpoint()});
  Txn txn;
  txn.success = {Put{"k", "v"}};
  EXPECT_TRUE(gateway->txn(txn, in(2 * kSecond)));
}

TEST_F(GatewayClientTest, AStoppedClientRefuses) {
  const auto gateway = client({"127.0.0.1:1"});
  gateway->stop();
  const auto reply = gateway->range({"a", {}}, in(5 * kSecond));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kShutdown);
}

TEST_F(GatewayClientTest, EndpointsThatAreNoneAreInvalid) {
  for (const char* endpoint : {"", "host", ":2379", "host:", "host:0", "host:x", "host:70000"}) {
    GatewayOptions options;
    options.endpoints = {endpoint};
    const auto made = GatewayClient::make(clock_, options);
    ASSERT_FALSE(made) << endpoint;
    EXPECT_EQ(made.error().code, Code::kInvalid);
  }
  EXPECT_FALSE(GatewayClient::make(clock_, {}));
}

}  // namespace
}  // namespace kvsyncfs::etcd
