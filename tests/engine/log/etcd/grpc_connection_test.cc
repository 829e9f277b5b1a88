// One connection against a server that pings, as etcd's does with each request that it reads.
#include "engine/log/etcd/grpc_connection.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kvsyncfs::etcd {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr const char* kPing = "pingpong";  // what a ping carries, and its answer

class ManualClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  std::uint64_t boot_ns() override { return now_ns; }
  std::atomic<std::uint64_t> now_ns = kSecond;
};

std::string frame(char type, char flags, char stream, const std::string& payload) {
  return std::string(2, '\0') + static_cast<char>(payload.size()) + type + flags +
         std::string(3, '\0') + stream + payload;
}

/// A ping and then the answer of an empty message.
std::string answer(char stream) {
  constexpr char kData = 0, kHeaders = 1, kSettings = 4, kPingFrame = 6;
  const std::string trailer = std::string(1, '\0') + "\x0bgrpc-status\x01" + "0";
  return (stream == 1 ? frame(kSettings, 0, 0, "") : "") + frame(kPingFrame, 0, 0, kPing) +
         frame(kHeaders, 4, stream, "\x88") + frame(kData, 0, stream, std::string(5, '\0')) +
         frame(kHeaders, 5, stream, trailer);
}

class GrpcConnectionTest : public ::testing::Test {
 protected:
  /// Connects; `serve` has the other end. `socket_` belongs to it until the test ends.
  void connect(const std::function<void()>& serve) {
    tcp::acceptor acceptor(context_, {asio::ip::address_v4::loopback(), 0});
    const std::uint16_t port = acceptor.local_endpoint().port();
    auto made = GrpcConnection::connect(clock_, {"127.0.0.1", "127.0.0.1", port}, nullptr,
                                        clock_.now_ns + kSecond);
    ASSERT_TRUE(made);
    connection_ = std::move(*made);
    acceptor.accept(socket_);
    server_ = std::thread(serve);
  }
  ~GrpcConnectionTest() override {
    connection_.reset();
    if (server_.joinable()) server_.join();
  }
  /// What came since the last time, at least something; all that one write sent.
  std::string came() {
    std::array<char, 4096> bytes;
    boost::system::error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(bytes), error);
    return {bytes.data(), size};
  }

  /// Up to the end of the request of this stream, which has an empty message.
  std::string request(char stream) {
    const std::string end = frame(0, 1, stream, std::string(5, '\0'));
    std::string all = came();
    for (std::string more = all; !more.empty() && !all.ends_with(end); all += more) more = came();
    return all;
  }

  ManualClock clock_;
  asio::io_context context_;
  tcp::socket socket_{context_};
  std::unique_ptr<GrpcConnection> connection_;
  std::thread server_;
};

TEST_F(GrpcConnectionTest, APingIsAnsweredWithTheFirstRequestASecondLater) {
  std::vector<std::string> requests;
  connect([&] {
    for (const char stream : {'\1', '\3', '\5', '\7'}) {
      requests.push_back(request(stream));
      asio::write(socket_, asio::buffer(answer(stream)));
    }
  });
  for (int i = 0; i < 4; ++i) {
    const auto reply = connection_->call("/a", "", "", clock_.now_ns + 20 * kSecond);
    ASSERT_TRUE(reply) << describe(reply.error());
    EXPECT_TRUE(connection_->usable());
    clock_.now_ns += kSecond / 2;
  }
  server_.join();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[0].find(kPing), std::string::npos);
  EXPECT_EQ(requests[1].find(kPing), std::string::npos);
  EXPECT_NE(requests[2].find(kPing), std::string::npos);
  EXPECT_EQ(requests[3].find(kPing), std::string::npos);
}

TEST_F(GrpcConnectionTest, AStreamAnswersAPingAtOnce) {
  std::string answered;
  connect([&] {
    came();
    asio::write(socket_, asio::buffer(frame(4, 0, 0, "") + frame(6, 0, 0, kPing)));
    while (answered.find(kPing) == std::string::npos) {
      const std::string more = came();
      if (more.empty()) return;
      answered += more;
    }
    asio::write(socket_, asio::buffer(answer(1).substr(9)));
  });
  ASSERT_TRUE(connection_->start_stream("/a", "", "", clock_.now_ns + kSecond));
  const auto message = connection_->next_message(clock_.now_ns + 20 * kSecond);
  ASSERT_TRUE(message) << describe(message.error());
  EXPECT_NE(answered.find(kPing), std::string::npos);
}

TEST_F(GrpcConnectionTest, ARequestThatFillsTheSocketArrivesWhole) {
  constexpr std::size_t kSize = 60'000;  // below HTTP/2's first window
  std::string all;
  connect([&] {
    while (all.size() < kSize) {
      const std::string more = came();
      if (more.empty()) return;
      all += more;
    }
    asio::write(socket_, asio::buffer(answer(1)));
  });
  const auto reply =
      connection_->call("/a", std::string(kSize, 'x'), "", clock_.now_ns + 20 * kSecond);
  ASSERT_TRUE(reply) << describe(reply.error());
}

TEST_F(GrpcConnectionTest, AServerThatGoesAwayIsToldAtOnce) {
  connect([&] {
    came();
    socket_.close();
  });
  const auto reply = connection_->call("/a", "", "", clock_.now_ns + 20 * kSecond);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kIo);
  EXPECT_FALSE(connection_->usable());
}

}  // namespace
}  // namespace kvsyncfs::etcd
