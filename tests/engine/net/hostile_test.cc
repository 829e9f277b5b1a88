// What comes in wrong ends its connection with one clear error and a counter, and harms nothing
// else.
#include <functional>

#include "tests/engine/net/raw_peer.h"

namespace kvsyncfs {
namespace {

class Hostile : public ::testing::Test {
 protected:
  Hostile() : memory_(noise(1u << 20)) {
    key_ = node_->register_region(memory_.bytes()).value();
    good_.join(2, node_.address());
  }
  ~Hostile() override { expect_unharmed(); }

  void expect_unharmed() {
    AlignedBuffer out(memory_.size());
    Asked asked;
    ASSERT_TRUE(asked.read(good_, 2, key_, 0, out.bytes()));
    EXPECT_TRUE(asked.answer());
    EXPECT_TRUE(same(out.bytes(), memory_.bytes()));
    EXPECT_EQ(good_.peer(2).counts.disconnects, 0u);
  }

  RawPeer authenticated() {
    RawPeer peer(node_->port());
    EXPECT_TRUE(peer.greet(RawPeer::hello(7, 2)));
    return peer;
  }
  /// The connection is closed, counted once, and the daemon is told why.
  void expect_closed(RawPeer& peer) {
    EXPECT_TRUE(peer.sees_close());
    const auto refusal = node_.refusals.take();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, Code::kCorrupt);
    EXPECT_FALSE(refusal->detail.empty());
    EXPECT_EQ(node_->counters().bad_frames, ++closed_);
  }

  AlignedBuffer memory_;
  TestNode node_{test_options(2)};
  TestNode good_{test_options(1)};
  RegionKey key_;
  std::uint64_t closed_ = 0;
};

/// Changes a field of a header and makes its checksum right again.
std::string changed(std::string frame, std::size_t offset, std::uint32_t value) {
  std::memcpy(frame.data() + offset, &value, sizeof value);
  const std::uint32_t checksum = crc32c(as_bytes(frame).first(44));
  std::memcpy(frame.data() + 44, &checksum, sizeof checksum);
  return frame;
}

TEST_F(Hostile, GarbageIsClosedAtOnce) {
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\0'), std::string("Kx"),
        std::string("KVSF") + std::string(44, '\xff')}) {
    RawPeer stranger(node_->port());
    stranger.send_bytes(garbage);
    EXPECT_TRUE(stranger.sees_close());
    EXPECT_TRUE(node_.refusals.take());
  }
}

TEST_F(Hostile, OversizedFramesAreClosedBeforeTheirBytesCome) {
  for (const std::size_t offset : {std::size_t{24}, std::size_t{28}}) {
    for (const std::uint32_t size : {0xffffffffu, (8u << 20) + 1}) {
      RawPeer peer = authenticated();
      const std::string frame = peer.frame(FrameType::kRequest, "h", "", 1);
      ASSERT_TRUE(peer.send_bytes(changed(frame, offset, size).substr(0, kFrameHeaderSize)));
      expect_closed(peer);
    }
  }
}

TEST_F(Hostile, ALengthThatAFlippedBitMadeIsNotWaitedFor) {
  RawPeer peer = authenticated();
  std::string frame = peer.frame(FrameType::kRequest, "h", "", 1);
  frame[25] = 0x40;
  ASSERT_TRUE(peer.send_bytes(frame));
  expect_closed(peer);
}

TEST_F(Hostile, ALengthShorterThanTheBytesIsFound) {
  RawPeer peer = authenticated();
  const std::string frame = peer.frame(FrameType::kRequest, "head", std::string(1000, 'b'), 1);
  ASSERT_TRUE(peer.send_bytes(changed(frame, 28, 900)));
  expect_closed(peer);
  EXPECT_TRUE(node_.requests.is_empty());
}

TEST_F(Hostile, ADamagedBodyIsFound) {
  for (const std::size_t offset : {std::size_t{48}, std::size_t{500}, std::size_t{1052}}) {
    RawPeer peer = authenticated();
    std::string frame = peer.frame(FrameType::kRequest, "head", std::string(1000, 'b'), 1);
    frame[offset] = static_cast<char>(frame[offset] ^ 1);
    ASSERT_TRUE(peer.send_bytes(frame));
    expect_closed(peer);
  }
  EXPECT_TRUE(node_.requests.is_empty());
}

TEST_F(Hostile, ATruncatedFrameIsNoRequest) {
  const std::string frame = RawPeer(node_->port()).frame(FrameType::kRequest, "h", "body", 1);
  for (std::size_t size = 1; size < frame.size(); size += 7) {
    RawPeer peer = authenticated();
    std::string whole = peer.frame(FrameType::kRequest, "h", "body", 1);
    ASSERT_TRUE(peer.send_bytes(whole.substr(0, size)));
  }
  expect_unharmed();
  EXPECT_TRUE(node_.requests.is_empty());
  EXPECT_EQ(node_->counters().bad_frames, 0u);  // it merely went away
}

TEST_F(Hostile, ADuplicatedFrameIsFound) {
  RawPeer peer = authenticated();
  const std::string frame = peer.frame(FrameType::kRequest, "once", "", 1);
  ASSERT_TRUE(peer.send_bytes(frame + frame));
  expect_closed(peer);
  EXPECT_EQ(node_.requests.take()->incoming.head, "once");
  EXPECT_TRUE(node_.requests.is_empty());
}

TEST_F(Hostile, AReorderedFrameIsFound) {
  RawPeer peer = authenticated();
  const std::string first = peer.frame(FrameType::kRequest, "first", "", 1);
  const std::string second = peer.frame(FrameType::kRequest, "second", "", 2);
  ASSERT_TRUE(peer.send_bytes(second + first));
  expect_closed(peer);
  EXPECT_TRUE(node_.requests.is_empty());
}

TEST_F(Hostile, AnOldRequestNumberIsFound) {
  RawPeer peer = authenticated();
  ASSERT_TRUE(peer.send(FrameType::kRequest, "a", "", 5));
  ASSERT_TRUE(peer.send(FrameType::kRequest, "b", "", 5));
  expect_closed(peer);
  EXPECT_EQ(node_.requests.take()->incoming.head, "a");
}

TEST_F(Hostile, MessagesOfTheOtherSideAreRefused) {
  for (const FrameType type :
       {FrameType::kHello, FrameType::kWelcome, FrameType::kPong, FrameType::kReply}) {
    RawPeer peer = authenticated();
    ASSERT_TRUE(peer.send(type, "", "", type == FrameType::kReply ? 1 : 0));
    expect_closed(peer);
  }
}

TEST_F(Hostile, MalformedReadsAreClosed) {
  const std::string good = encode(ReadRange{key_.value, 0, 4096});
  for (const std::string& head :
       {std::string(), good.substr(1), good + "x", encode(ReadRange{key_.value, 0, 0}),
        encode(ReadRange{key_.value, 0, 0xffffffff})}) {
    RawPeer peer = authenticated();
    ASSERT_TRUE(peer.send(FrameType::kRead, head, "", 1));
    expect_closed(peer);
  }
}

TEST_F(Hostile, ByteByByteIsAsGoodAsAtOnce) {
  RawPeer peer = authenticated();
  for (const char byte : peer.frame(FrameType::kRequest, "slow", "body", 1))
    ASSERT_TRUE(peer.send_bytes({&byte, 1}));
  auto request = node_.requests.take();
  EXPECT_EQ(request->incoming.head, "slow");
  answer_with(*request, "y");
  EXPECT_EQ(peer.receive()->head, "y");
}

/// What an acceptor may do to the node that dialed it.
class HostileAcceptor : public ::testing::Test {
 protected:
  void expect_down(const std::function<void(RawPeer&, std::uint64_t request)>& misbehave) {
    RawListener listener;
    TestNode dialer(test_options(1));
    dialer->set_peer({2}, {listener.address()}).value();
    RawPeer peer = listener.accept();
    ASSERT_TRUE(peer.accept_greeting(2, {16, 1 << 20}));
    ASSERT_TRUE(dialer.events.take()->is_up);
    AlignedBuffer out(4096);
    Asked asked;
    ASSERT_TRUE(asked.read(dialer, 2, {1}, 0, out.bytes()));
    const auto question = peer.receive_message();
    ASSERT_TRUE(question);
    misbehave(peer, question->header.request);
    EXPECT_EQ(asked.error(), Code::kDisconnected);
    EXPECT_EQ(dialer.events.take()->why.code, Code::kCorrupt);
    EXPECT_EQ(dialer->counters().bad_frames, 1u);
  }
};

TEST_F(HostileAcceptor, AnAnswerToNothingEndsTheConnection) {
  expect_down([](RawPeer& peer, std::uint64_t request) {
    peer.send(FrameType::kReply, "", "", request + 1);
  });
}

TEST_F(HostileAcceptor, AReadOfAnotherSizeEndsTheConnection) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{4095}, std::size_t{4097}})
    expect_down([size](RawPeer& peer, std::uint64_t request) {
      peer.send(FrameType::kReply, "", std::string(size, 'x'), request);
    });
}

TEST_F(HostileAcceptor, ADamagedAnswerEndsTheConnection) {
  expect_down([](RawPeer& peer, std::uint64_t request) {
    std::string frame = peer.frame(FrameType::kReply, "", std::string(4096, 'x'), request);
    frame[1000] = 'y';
    peer.send_bytes(frame);
  });
}

TEST_F(HostileAcceptor, ASecondAnswerEndsTheConnection) {
  RawListener listener;
  TestNode dialer(test_options(1));
  dialer->set_peer({2}, {listener.address()}).value();
  RawPeer peer = listener.accept();
  ASSERT_TRUE(peer.accept_greeting(2, {16, 1 << 20}));
  ASSERT_TRUE(dialer.events.take()->is_up);
  Asked asked;
  ASSERT_TRUE(asked.call(dialer, 2, "x"));
  const std::uint64_t request = peer.receive_message()->header.request;
  ASSERT_TRUE(peer.send(FrameType::kReply, "first", "", request));
  EXPECT_EQ(asked.answer()->head, "first");
  ASSERT_TRUE(peer.send(FrameType::kReply, "second", "", request));
  EXPECT_EQ(dialer.events.take()->why.code, Code::kCorrupt);
  EXPECT_FALSE(asked.is_done());
}

TEST_F(HostileAcceptor, AnErrorTextIsCutAndPrintable) {
  RawListener listener;
  TestNode dialer(test_options(1));
  dialer->set_peer({2}, {listener.address()}).value();
  RawPeer peer = listener.accept();
  ASSERT_TRUE(peer.accept_greeting(2, {16, 1 << 20}));
  Asked asked;
  ASSERT_TRUE(asked.call(dialer, 2, "x"));
  const std::uint64_t request = peer.receive_message()->header.request;
  ASSERT_TRUE(peer.send(FrameType::kReply, "\x1b[2J" + std::string(5000, 'x'), "", request,
                        to_wire(Code::kBusy)));
  const auto answer = asked.answer();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kBusy);
  EXPECT_LT(answer.error().detail.size(), 400u);
  EXPECT_EQ(answer.error().detail.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace kvsyncfs
