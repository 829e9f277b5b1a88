// The sending half over a pair of sockets that hold little, in one thread.
#include "engine/net/tcp/sender.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "engine/env/real.h"
#include "engine/net/tcp/receiver.h"

namespace kvsyncfs {
namespace {

class OneFrame final : public FrameSink {
 public:
  Result<MutableBytes> begin_frame(const FrameHeader& header) override {
    body_.resize(header.body_size);
    return MutableBytes(reinterpret_cast<std::byte*>(body_.data()), body_.size());
  }
  Status take_frame(const FrameHeader&, std::string, std::uint16_t trailer_code) override {
    is_complete = true;
    code = trailer_code;
    return {};
  }
  bool is_complete = false;
  std::uint16_t code = 0;

 private:
  std::string body_;
};

class SenderTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kSize = 4u << 20;

  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
    const int small = 16'384;
    ASSERT_EQ(::setsockopt(ends_[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    std::memset(memory_.data(), 0, memory_.size());
    key_ = regions_.add(memory_.bytes()).value();
    OutFrame frame;
    frame.type = FrameType::kReply;
    frame.request = 1;
    frame.region = ReadRange{key_.value, 0, kSize};
    sender_.push(std::move(frame));
    ASSERT_TRUE(sender_.take_turn());
  }
  void TearDown() override {
    for (const int end : ends_) ::close(end);
  }

  /// Sends and receives all of it; `between` runs each time that the socket is full.
  void carry(const auto& between) {
    while (!sink_.is_complete) {
      const Sender::Outcome outcome = sender_.send(ends_[0]);
      ASSERT_NE(outcome, Sender::Outcome::kBroken);
      between();
      const auto room = receiver_.room();
      const ssize_t got = ::recv(ends_[1], room[0].data(), room[0].size(), MSG_DONTWAIT);
      ASSERT_GT(got, 0);
      ASSERT_TRUE(receiver_.received(static_cast<std::size_t>(got)).has_value());
    }
  }

  AlignedBuffer memory_{kSize};
  std::unique_ptr<Random> random_ = make_real_random();
  Regions regions_{*random_};
  RegionKey key_;
  Sender sender_{regions_};
  OneFrame sink_;
  Receiver receiver_{sink_};
  std::array<int, 2> ends_{-1, -1};
};

TEST_F(SenderTest, BytesThatChangeWhileTheyAreSentSpoilNoChecksum) {
  // As under RDMA a read may be torn; the page's own checksum finds that, not the frame's.
  int value = 0;
  carry([&] { std::memset(memory_.data(), ++value, memory_.size()); });
  EXPECT_GT(value, 1) << "the socket was never full";
  EXPECT_EQ(sink_.code, 0);
}

TEST_F(SenderTest, ARegionThatGoesAwayInTheMiddleIsToldByTheTrailer) {
  carry([&] { regions_.remove(key_); });
  EXPECT_EQ(from_wire(sink_.code), Code::kStale);
}

}  // namespace
}  // namespace kvsyncfs
