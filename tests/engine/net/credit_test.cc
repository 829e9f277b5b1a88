// Bounds of memory and of what is under way, measured on real connections.
#include "tests/engine/net/raw_peer.h"

namespace kvsyncfs {
namespace {

TEST(Credits, TheQueueToAPeerThatDoesNotAnswerIsBounded) {
  RawListener listener;
  TcpOptions options = test_options(1);
  options.silence_ns = 30 * kSecondNs;
  options.queue_calls_max = 20;
  options.queue_bytes_max = 100'000;
  TestNode asker(options);
  asker->set_peer({2}, {listener.address()}).value();
  RawPeer frozen = listener.accept();
  ASSERT_TRUE(frozen.accept_greeting(2, {3, 1 << 20}));
  ASSERT_TRUE(asker.events.take()->is_up);
  std::vector<Asked> asked(100);
  std::size_t accepted = 0;
  for (Asked& one : asked) {
    const Status status = one.call(asker, 2, std::string(1000, 'h'));
    if (!status) {
      EXPECT_EQ(status.error().code, Code::kBusy);
    }
    accepted += status.has_value();
  }
  EXPECT_EQ(accepted, 23u);
  PeerStatus status = asker.peer(2);
  EXPECT_EQ(status.outstanding_calls, 3u);
  EXPECT_EQ(status.queued_calls, 20u);
  EXPECT_EQ(status.queued_bytes, 20'000u);
  EXPECT_EQ(status.counts.refused_busy, 77u);
  // An answer gives a credit back, and the next one goes out.
  const std::uint64_t first = frozen.receive_message()->header.request;
  ASSERT_TRUE(frozen.send(FrameType::kReply, "y", "", first));
  EXPECT_TRUE(asked[0].answer());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(frozen.receive_message());
  status = asker.peer(2);
  EXPECT_EQ(status.outstanding_calls, 3u);
  EXPECT_EQ(status.queued_calls, 19u);
}

TEST(Credits, UnansweredRequestsHereAreWhatWasGranted) {
  TcpOptions options = test_options(2);
  options.grant_calls = 5;
  TestNode server(options);
  TestNode asker(test_options(1));
  asker.join(2, server.address());
  std::vector<Asked> asked(50);
  for (Asked& one : asked) ASSERT_TRUE(one.call(asker, 2, "x"));
  std::vector<Request> held;
  for (int i = 0; i < 5; ++i) held.push_back(std::move(*server.requests.take()));
  EXPECT_EQ(asker.peer(2).outstanding_calls, 5u);
  EXPECT_EQ(asker.peer(2).queued_calls, 45u);
  EXPECT_TRUE(server.requests.is_empty());
  for (std::size_t i = 0; i < 50; ++i) {
    answer_with(held[i], "y");
    EXPECT_TRUE(asked[i].answer());
    if (i + 5 < 50) held.push_back(std::move(*server.requests.take()));
  }
}

TEST(Credits, APeerThatTakesMoreThanWasGrantedIsClosed) {
  TcpOptions options = test_options(2);
  options.grant_calls = 4;
  TestNode server(options);
  RawPeer greedy(server->port());
  ASSERT_TRUE(greedy.greet(RawPeer::hello(1, 2)));
  std::vector<Request> held;
  for (std::uint64_t request = 1; request <= 9; ++request)
    greedy.send(FrameType::kRequest, "more", "", request);
  for (int i = 0; i < 8; ++i) held.push_back(std::move(*server.requests.take()));
  EXPECT_TRUE(greedy.sees_close());
  EXPECT_EQ(server.refusals.take()->code, Code::kCorrupt);
  EXPECT_TRUE(server.requests.is_empty());
}

TEST(Credits, APeerThatTakesMoreBytesThanWereGrantedIsClosed) {
  TcpOptions options = test_options(2);
  options.grant_bytes = 0;  // one message of the largest size counts, and what is on its way back
  TestNode server(options);
  RawPeer greedy(server->port());
  ASSERT_TRUE(greedy.greet(RawPeer::hello(1, 2)));
  std::vector<Request> held;
  const std::string body(kFrameBodySizeMax, 'b');
  for (std::uint64_t request = 1; request <= 3; ++request)
    greedy.send(FrameType::kRequest, "", body, request);
  for (int i = 0; i < 2; ++i) held.push_back(std::move(*server.requests.take()));
  EXPECT_TRUE(greedy.sees_close());
  EXPECT_TRUE(server.requests.is_empty());
}

TEST(Credits, AnIncastOfManyReadsAsksForABoundedNumberOfBytesAtATime) {
  constexpr std::size_t kHolders = 6, kReads = 20, kSize = 256u << 10;
  AlignedBuffer memory = noise(kSize);
  TcpOptions options = test_options(1);
  options.read_bytes_max = 1u << 20;
  options.read_bytes_peer_max = 512u << 10;
  TestNode asker(options);
  std::vector<std::unique_ptr<TestNode>> holders;
  std::vector<RegionKey> keys;
  for (std::size_t i = 0; i < kHolders; ++i) {
    holders.push_back(std::make_unique<TestNode>(test_options(10 + i)));
    keys.push_back((*holders[i])->register_region(memory.bytes()).value());
    asker.join(10 + i, holders[i]->address());
  }
  std::vector<AlignedBuffer> outs;
  std::vector<Asked> asked(kHolders * kReads);
  for (std::size_t i = 0; i < asked.size(); ++i) outs.emplace_back(kSize);
  for (std::size_t i = 0; i < asked.size(); ++i)
    ASSERT_TRUE(asked[i].read(asker, 10 + i % kHolders, keys[i % kHolders], 0, outs[i].bytes()));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ASSERT_TRUE(asked[i].answer());
    EXPECT_TRUE(same(outs[i].bytes(), memory.bytes()));
  }
  const std::uint64_t peak = asker->counters().outstanding_read_bytes_max;
  EXPECT_GE(peak, options.read_bytes_max);
  EXPECT_LE(peak, options.read_bytes_max + kHolders * kSize);
}

}  // namespace
}  // namespace kvsyncfs
