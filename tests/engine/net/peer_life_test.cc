// Peers that come, die, fall silent, move and come back.
#include "tests/engine/net/raw_peer.h"

namespace kvsyncfs {
namespace {

/// Silence is seen in a tenth of the usual time.
TcpOptions quick(std::uint64_t node) {
  TcpOptions options = test_options(node);
  options.heartbeat_ns = kSecondNs / 40;
  options.silence_ns = kSecondNs / 10;
  return options;
}

TEST(PeerLife, APeerThatDiesInTheMiddleEndsItsCalls) {
  auto server = std::make_unique<TestNode>(test_options(2));
  TestNode asker(test_options(1));
  asker.join(2, server->address());
  Asked asked;
  AlignedBuffer room(1000);
  ASSERT_TRUE(asked.call(asker, 2, "x", {}, room.bytes()));
  auto request = server->requests.take();
  server.reset();
  EXPECT_EQ(asked.error(), Code::kDisconnected);
  const auto event = asker.events.take();
  ASSERT_TRUE(event);
  EXPECT_FALSE(event->is_up);
  EXPECT_EQ(event->why.code, Code::kDisconnected);
  EXPECT_EQ(asker.peer(2).outstanding_calls, 0u);
  EXPECT_EQ(asker.peer(2).outstanding_read_bytes, 0u);
  answer_with(*request, "to nobody");
}

TEST(PeerLife, ADownPeerRefusesAtOnceAndIsUpWhenItIsBack) {
  TcpOptions options = test_options(2);
  auto server = std::make_unique<TestNode>(options);
  options.listen = server->address();  // the same port in the next life
  options.incarnation = {2};
  TestNode asker(test_options(1));
  asker.join(2, server->address());
  server.reset();
  ASSERT_FALSE(asker.events.take()->is_up);
  Asked asked;
  EXPECT_EQ(asked.call(asker, 2, "x").error().code, Code::kUnreachable);
  TestNode again(options);
  auto event = asker.events.take();
  while (event && !event->is_up) event = asker.events.take();  // refused connects, told once
  ASSERT_TRUE(event);
  EXPECT_EQ(event->incarnation, Incarnation{2});
  ASSERT_TRUE(asked.call(asker, 2, "x"));
  answer_with(*again.requests.take(), "y");
  EXPECT_EQ(asked.answer()->head, "y");
  EXPECT_EQ(asker.peer(2).counts.connects, 2u);
  EXPECT_EQ(asker.peer(2).counts.disconnects, 1u);
}

TEST(PeerLife, APeerThatComesIsDialedAtOnce) {
  TcpOptions options = test_options(2);
  auto server = std::make_unique<TestNode>(options);
  options.listen = server->address();
  options.incarnation = {2};
  TcpOptions patient = test_options(1);
  patient.backoff_min_ns = patient.backoff_max_ns = 3600 * kSecondNs;
  TestNode asker(patient);
  asker.join(2, server->address());
  server.reset();
  ASSERT_FALSE(asker.events.take()->is_up);
  TestNode again(options);
  again.join(1, asker.address());
  const auto event = asker.events.take();
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->is_up);
}

TEST(PeerLife, CallsWaitWhileAPeerIsReachedForTheFirstTime) {
  TestNode server(test_options(2), [](Incoming, Responder out) { out.reply(Answer{"y", {}}); });
  TestNode asker(test_options(1));
  asker->set_peer({2}, {server.address()}).value();
  Asked asked;
  ASSERT_TRUE(asked.call(asker, 2, "x"));
  EXPECT_EQ(asked.answer()->head, "y");
}

TEST(PeerLife, AFailureIsToldOnce) {
  std::string nobody;
  { nobody = RawListener().address(); }
  TestNode asker(test_options(1));
  asker->set_peer({2}, {nobody}).value();
  const auto event = asker.events.take();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->why.code, Code::kUnreachable);
  EXPECT_NE(event->why.detail.find("node 2 at 127.0.0.1"), std::string::npos) << event->why.detail;
  RawListener later;  // time for more tries: until the peer is up somewhere else
  asker->set_peer({2}, {later.address()}).value();
  RawPeer peer = later.accept();
  ASSERT_TRUE(peer.accept_greeting(2, {16, 1 << 20}));
  EXPECT_TRUE(asker.events.take()->is_up);
}

TEST(PeerLife, TheNextAddressIsTried) {
  std::string nobody;
  { nobody = RawListener().address(); }
  TestNode server(test_options(2));
  TestNode asker(test_options(1));
  asker->set_peer({2}, {nobody, server.address()}).value();
  ASSERT_FALSE(asker.events.take()->is_up);
  EXPECT_TRUE(asker.events.take()->is_up);
}

TEST(PeerLife, SilenceIsSuspectedAndEndsTheCalls) {
  RawListener listener;
  TestNode asker(quick(1));
  asker->set_peer({2}, {listener.address()}).value();
  RawPeer frozen = listener.accept();
  ASSERT_TRUE(frozen.accept_greeting(2, {16, 1 << 20}));
  ASSERT_TRUE(asker.events.take()->is_up);
  Asked asked;
  const std::uint64_t begin_ns = asker.now_ns();
  ASSERT_TRUE(asked.call(asker, 2, "x"));
  const auto event = asker.events.take();
  EXPECT_EQ(event->why.code, Code::kTimeout);
  EXPECT_LT(asker.now_ns() - begin_ns, kSecondNs);
  EXPECT_EQ(asked.error(), Code::kDisconnected);
  EXPECT_EQ(asker.peer(2).counts.silences, 1u);
  EXPECT_TRUE(frozen.sees_close());
}

TEST(PeerLife, HeartbeatsKeepAnIdleConnection) {
  TestNode server(quick(2));
  TestNode asker(quick(1));
  asker.join(2, server.address());
  RawListener silent;  // another peer that falls silent three times meanwhile
  asker->set_peer({3}, {silent.address()}).value();
  for (int i = 0; i < 3; ++i) {
    RawPeer peer = silent.accept();
    ASSERT_TRUE(peer.accept_greeting(3, {16, 1 << 20}));
    EXPECT_TRUE(asker.events.take()->is_up);
    const auto event = asker.events.take();
    EXPECT_EQ(event->node, NodeId{3});
    EXPECT_EQ(event->why.code, Code::kTimeout);
  }
  EXPECT_EQ(asker.peer(2).counts.disconnects, 0u);
  EXPECT_GE(asker.peer(2).counts.heartbeats, 3u);
  EXPECT_GT(asker.peer(2).round_trip_ns, 0u);
  EXPECT_EQ(asker.peer(2).counts.messages_sent, 0u);  // heartbeats are no messages
}

TEST(PeerLife, ASilentPeerHoldsUpNobodyElse) {
  TestNode server(test_options(2), [](Incoming, Responder out) { out.reply(Answer{"y", {}}); });
  AlignedBuffer memory = noise(4u << 20);
  const RegionKey key = server->register_region(memory.bytes()).value();
  TcpOptions options = test_options(1);
  options.silence_ns = 30 * kSecondNs;  // it stays connected
  options.read_bytes_max = options.read_bytes_peer_max = 1u << 20;
  TestNode asker(options);
  asker.join(2, server.address());
  RawListener listener;
  asker->set_peer({3}, {listener.address()}).value();
  RawPeer frozen = listener.accept();
  ASSERT_TRUE(frozen.accept_greeting(3, {16, 1 << 20}));
  ASSERT_TRUE(asker.events.take()->is_up);
  // It holds all bytes that may be outstanding, and its socket is full.
  AlignedBuffer out(1u << 20), room(1u << 20);
  Asked stuck, also_stuck;
  ASSERT_TRUE(stuck.read(asker, 3, {1}, 0, out.bytes()));
  ASSERT_TRUE(also_stuck.call(asker, 3, "x", memory.bytes()));
  for (int i = 0; i < 20; ++i) {
    Asked asked;
    ASSERT_TRUE(asked.call(asker, 2, "x"));
    EXPECT_EQ(asked.answer()->head, "y");
    ASSERT_TRUE(asked.read(asker, 2, key, 0, room.bytes()));
    EXPECT_TRUE(asked.answer());
  }
  EXPECT_FALSE(stuck.is_done());
  asker.stop();
  EXPECT_EQ(stuck.error(), Code::kShutdown);
  EXPECT_EQ(also_stuck.error(), Code::kShutdown);
}

TEST(PeerLife, ARemovedPeerIsForgotten) {
  TestNode server(test_options(2));
  TestNode asker(test_options(1));
  asker.join(2, server.address());
  Asked asked;
  ASSERT_TRUE(asked.call(asker, 2, "x"));
  asker->remove_peer({2});
  asker->remove_peer({2});
  EXPECT_EQ(asked.error(), Code::kDisconnected);
  EXPECT_EQ(asked.call(asker, 2, "x").error().code, Code::kUnreachable);
}

TEST(PeerLife, ABodyThatTricklesInIsASignOfLife) {
  RawListener listener, clock;
  TestNode asker(quick(1));
  asker->set_peer({2}, {listener.address()}).value();
  RawPeer slow = listener.accept();
  ASSERT_TRUE(slow.accept_greeting(2, {16, 1 << 20}));
  ASSERT_TRUE(asker.events.take()->is_up);
  asker->set_peer({3}, {clock.address()}).value();
  RawPeer ticking = clock.accept();
  ASSERT_TRUE(ticking.accept_greeting(3, {16, 1 << 20}));
  ASSERT_TRUE(asker.events.take()->is_up);
  AlignedBuffer room(1000);
  Asked asked;
  ASSERT_TRUE(asked.call(asker, 2, "x", {}, room.bytes()));
  const std::uint64_t request = slow.receive_message()->header.request;
  std::string frame = slow.frame(FrameType::kReply, "y", std::string(1000, 'b'), request);
  for (int tick = 0; tick < 12; ++tick) {  // three times as long as silence
    ASSERT_EQ(ticking.receive()->header.type, FrameType::kPing);
    ASSERT_TRUE(ticking.send(FrameType::kPong));
    ASSERT_TRUE(slow.send_bytes(frame.substr(0, 60)));
    frame.erase(0, 60);
  }
  ASSERT_TRUE(slow.send_bytes(frame));
  EXPECT_TRUE(asked.answer());
}

TEST(PeerLife, ANodeThatWasRemovedIsClosedAndLetInNoMore) {
  TestNode server(test_options(2));
  TestNode asker(test_options(1));
  asker.join(2, server.address());
  server.outcast = 1;
  server->remove_peer({1});
  EXPECT_EQ(asker.events.take()->why.code, Code::kDisconnected);
  EXPECT_EQ(server.refusals.take()->code, Code::kNotPermitted);
  EXPECT_EQ(asker.events.take()->why.code, Code::kNotPermitted);
  server.outcast = 0;
  EXPECT_TRUE(asker.events.take()->is_up);
}

TEST(PeerLife, APeerThatMovedIsReachedThere) {
  auto here = std::make_unique<TestNode>(test_options(2));
  TestNode there(test_options(2));
  TestNode asker(test_options(1));
  asker.join(2, here->address());
  asker->set_peer({2}, {there.address()}).value();
  EXPECT_FALSE(asker.events.take()->is_up);
  EXPECT_TRUE(asker.events.take()->is_up);
  Asked asked;
  ASSERT_TRUE(asked.call(asker, 2, "x"));
  answer_with(*there.requests.take(), "y");
  EXPECT_TRUE(asked.answer());
}

TEST(PeerLife, PeersThatCannotBeAreInvalid) {
  TestNode node(test_options(1));
  EXPECT_EQ(node->set_peer({1}, {"127.0.0.1:1"}).error().code, Code::kInvalid);
  EXPECT_EQ(node->set_peer({0}, {"127.0.0.1:1"}).error().code, Code::kInvalid);
  EXPECT_EQ(node->set_peer({2}, {}).error().code, Code::kInvalid);
  for (const char* address : {"", "127.0.0.1", "127.0.0.1:", ":1", "127.0.0.1:x", "host:1",
                              "127.0.0.1:65536", "[::1]", "::1]:5x"})
    EXPECT_EQ(node->set_peer({2}, {address}).error().code, Code::kInvalid) << address;
  EXPECT_TRUE(node->set_peer({2}, {"[::1]:1"}));
  Asked asked;
  EXPECT_EQ(asked.call(node, 9, "x").error().code, Code::kUnreachable);
}

TEST(PeerLife, TwoNodesAskEachOther) {
  const auto echo = [](Incoming in, Responder out) { out.reply(Answer{"re " + in.head, {}}); };
  TestNode a(test_options(1), echo), b(test_options(2), echo);
  a.join(2, b.address());
  b.join(1, a.address());
  Asked to_b, to_a;
  ASSERT_TRUE(to_b.call(a, 2, "a"));
  ASSERT_TRUE(to_a.call(b, 1, "b"));
  EXPECT_EQ(to_b.answer()->head, "re a");
  EXPECT_EQ(to_a.answer()->head, "re b");
}

}  // namespace
}  // namespace kvsyncfs
