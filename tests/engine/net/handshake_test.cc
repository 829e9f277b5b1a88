// Who is let in, and what the others are told.
#include "engine/net/tcp/handshake.h"

#include "tests/engine/net/raw_peer.h"

namespace kvsyncfs {
namespace {

/// Both ends fail with the same error, once, and count it.
void expect_refused(const TcpOptions& dialer_options, Code code,
                    std::uint64_t TransportCounters::*counter) {
  TestNode acceptor(test_options(2));
  TestNode dialer(dialer_options);
  dialer->set_peer({3 - dialer_options.node.value % 2}, {acceptor.address()}).value();
  const auto event = dialer.events.take();
  ASSERT_TRUE(event);
  EXPECT_FALSE(event->is_up);
  EXPECT_EQ(event->why.code, code) << describe(event->why);
  const auto refusal = acceptor.refusals.take();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, code) << describe(*refusal);
  EXPECT_GE(acceptor->counters().*counter, 1u);
  EXPECT_GE(dialer->counters().*counter, 1u);
  EXPECT_FALSE(acceptor.peer(dialer_options.node.value).counts.messages_received);
}

TEST(Handshake, AWrongSecretIsRefused) {
  TcpOptions options = test_options(1);
  options.secret = "another secret of some size";
  expect_refused(options, Code::kAccess, &TransportCounters::refused_secret);
}

TEST(Handshake, AnotherVolumeIsRefused) {
  TcpOptions options = test_options(1);
  options.volume[15] ^= 1;
  expect_refused(options, Code::kNotFound, &TransportCounters::refused_volume);
}

TEST(Handshake, WhileTheSecretChangesEitherIsGoodWhereBothSidesKnowIt) {
  using Secrets = std::vector<std::string>;
  const std::string now = test_options(1).secret, next = "the next secret of this size";
  struct Row {
    Secrets dialer, acceptor;
    bool is_good;
  };
  const Row rows[] = {{{now}, {next, now}, true},  {{next, now}, {now}, true},
                      {{next}, {next, now}, true}, {{next, now}, {next}, true},
                      {{next}, {next}, true},      {{next, now}, {next, now}, true},
                      {{now}, {next}, false},      {{next}, {now}, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows);
    TestNode acceptor(test_options(2)), dialer(test_options(1));
    acceptor->set_secrets(row.acceptor);
    dialer->set_secrets(row.dialer);
    dialer->set_peer({2}, {acceptor.address()}).value();
    const auto event = dialer.events.take();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->is_up, row.is_good) << describe(event->why);
    EXPECT_TRUE(row.is_good || event->why.code == Code::kAccess) << describe(event->why);
  }
}

TEST(Handshake, ANodeWithThisNodesIdIsRefused) {
  TestNode acceptor(test_options(2));
  RawPeer twin(acceptor->port());
  ASSERT_TRUE(twin.send(FrameType::kHello, encode(RawPeer::hello(2, 2))));
  const auto answer = twin.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.type, FrameType::kRefuse);
  EXPECT_EQ(from_wire(answer->header.kind), Code::kExists);
  EXPECT_NE(answer->head.find("two nodes with one identity"), std::string::npos);
  EXPECT_TRUE(twin.sees_close());
  EXPECT_EQ(acceptor.refusals.take()->code, Code::kExists);
  EXPECT_EQ(acceptor->counters().refused_identity, 1u);
}

TEST(Handshake, AnotherNodeThanTheWantedOneIsRefused) {
  TestNode acceptor(test_options(2));
  TestNode dialer(test_options(1));
  dialer->set_peer({7}, {acceptor.address()}).value();
  EXPECT_EQ(dialer.events.take()->why.code, Code::kStale);
  EXPECT_EQ(acceptor.refusals.take()->code, Code::kStale);
}

TEST(Handshake, AnotherMajorVersionIsRefused) {
  TestNode acceptor(test_options(2));
  RawPeer newer(acceptor->port());
  std::string hello = newer.frame(FrameType::kHello, encode(RawPeer::hello(1, 2)));
  hello[4] = 2;
  hello[44] = 'x';  // whatever its checksum is in that version
  ASSERT_TRUE(newer.send_bytes(hello));
  const auto answer = newer.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.type, FrameType::kRefuse);
  EXPECT_EQ(from_wire(answer->header.kind), Code::kNewerFormat);
  EXPECT_TRUE(newer.sees_close());
  const auto refusal = acceptor.refusals.take();
  EXPECT_EQ(refusal->code, Code::kNewerFormat);
  EXPECT_NE(refusal->detail.find("protocol version 2"), std::string::npos);
  EXPECT_EQ(acceptor->counters().refused_version, 1u);
}

TEST(Handshake, ALaterMinorVersionIsLetIn) {
  TestNode acceptor(test_options(2));
  RawPeer later(acceptor->port());
  Hello hello = RawPeer::hello(1, 2);
  hello.minor = 99;
  ASSERT_TRUE(later.greet(hello));
  ASSERT_TRUE(later.send(FrameType::kPing));
  EXPECT_EQ(later.receive()->header.type, FrameType::kPong);
}

TEST(Handshake, AProofIsGoodForOneHandshakeOnly) {
  TestNode acceptor(test_options(2));
  const std::string hello_head = encode(RawPeer::hello(1, 2));
  RawPeer first(acceptor->port());
  ASSERT_TRUE(first.send(FrameType::kHello, hello_head));
  const std::string rest = first.receive()->head.substr(32);
  const std::string proof =
      RawPeer::text(make_proof(test_options(1).secret, Side::kDialer, hello_head, rest));
  RawPeer replayed(acceptor->port());
  ASSERT_TRUE(replayed.send(FrameType::kHello, hello_head));
  ASSERT_TRUE(replayed.receive());
  ASSERT_TRUE(replayed.send(FrameType::kProof, proof));
  EXPECT_EQ(replayed.receive()->header.type, FrameType::kRefuse);
  ASSERT_TRUE(first.send(FrameType::kProof, proof));
  EXPECT_EQ(first.receive()->header.type, FrameType::kWelcome);
}

TEST(Handshake, TheAcceptorsProofSentBackProvesNothing) {
  TestNode acceptor(test_options(2));
  RawPeer mirror(acceptor->port());
  ASSERT_TRUE(mirror.send(FrameType::kHello, encode(RawPeer::hello(1, 2))));
  const std::string proof = mirror.receive()->head.substr(0, 32);
  ASSERT_TRUE(mirror.send(FrameType::kProof, proof));
  EXPECT_EQ(from_wire(mirror.receive()->header.kind), Code::kAccess);
}

TEST(Handshake, TheDialerDemandsAProofToo) {
  RawListener listener;
  TestNode dialer(test_options(1));
  dialer->set_peer({2}, {listener.address()}).value();
  RawPeer impostor = listener.accept();
  EXPECT_FALSE(impostor.accept_greeting(2, {16, 1 << 20}, "a guess at the secret"));
  EXPECT_EQ(dialer.events.take()->why.code, Code::kAccess);
}

TEST(Handshake, EveryPartOfBothHeadsIsProved) {
  const Hello hello = RawPeer::hello(1, 2);
  Challenge challenge;
  challenge.node = {2};
  challenge.incarnation = {1};
  const std::string hello_head = encode(hello), rest = encode(challenge);
  const Proof proof = make_proof("secret", Side::kDialer, hello_head, rest);
  EXPECT_NE(make_proof("secret", Side::kAcceptor, hello_head, rest), proof);
  EXPECT_NE(make_proof("secreT", Side::kDialer, hello_head, rest), proof);
  for (std::size_t i = 0; i < hello_head.size(); ++i) {
    std::string other = hello_head;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_NE(make_proof("secret", Side::kDialer, other, rest), proof) << i;
  }
  for (std::size_t i = 0; i < rest.size(); ++i) {
    std::string other = rest;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_NE(make_proof("secret", Side::kDialer, hello_head, other), proof) << i;
  }
  // Bytes cannot wander from one head into the other.
  EXPECT_NE(make_proof("secret", Side::kDialer, hello_head + rest.substr(0, 1), rest.substr(1)),
            proof);
  EXPECT_TRUE(equal_proofs(proof, RawPeer::text(proof)));
  EXPECT_FALSE(equal_proofs(proof, RawPeer::text(proof).substr(1)));
}

TEST(Handshake, AProofIsTheHmacOfTheManual) {
  // printf of "kvsyncfs dialer", two heads with their sizes, through openssl dgst -hmac.
  const Proof proof = make_proof("key", Side::kDialer, "hello", "challenge");
  std::string hex;
  for (const std::uint8_t byte : proof) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  EXPECT_EQ(hex, "c6ac6dfe5124ee9a347bbd9ee64ee467fe063c973e33cfa3b0545fd2cb42c99e");
}

TEST(Handshake, NothingElseIsHeardFromAStranger) {
  TestNode acceptor(test_options(2));
  const std::string range = encode(ReadRange{1, 0, 4096});
  for (const FrameType type :
       {FrameType::kChallenge, FrameType::kProof, FrameType::kWelcome, FrameType::kPing,
        FrameType::kPong, FrameType::kRequest, FrameType::kRead, FrameType::kReply}) {
    RawPeer stranger(acceptor->port());
    const bool is_numbered = type >= FrameType::kRequest;
    const bool has_head = type != FrameType::kPing && type != FrameType::kPong;
    ASSERT_TRUE(stranger.send(type, has_head ? range : "", "", is_numbered ? 1 : 0));
    EXPECT_EQ(stranger.receive()->header.type, FrameType::kRefuse);
    EXPECT_TRUE(stranger.sees_close());
    EXPECT_EQ(acceptor.refusals.take()->code, Code::kCorrupt);
  }
  EXPECT_TRUE(acceptor.requests.is_empty());
  EXPECT_EQ(acceptor->counters().bad_frames, 8u);
}

TEST(Handshake, AStrangerWhoDawdlesIsClosed) {
  TcpOptions options = test_options(2);
  options.handshake_ns = kSecondNs / 10;
  TestNode acceptor(options);
  RawPeer quiet(acceptor->port());
  RawPeer slow(acceptor->port());
  slow.send_bytes(slow.frame(FrameType::kHello, encode(RawPeer::hello(1, 2))).substr(0, 60));
  EXPECT_TRUE(quiet.sees_close());
  EXPECT_TRUE(slow.sees_close());
  EXPECT_EQ(acceptor->counters().handshake_timeouts, 2u);
}

TEST(Handshake, ACrowdOfStrangersKeepsNobodyOut) {
  TcpOptions options = test_options(2);
  options.handshake_ns = 30 * kSecondNs;
  options.strangers_max = 4;
  TestNode acceptor(options);
  std::vector<RawPeer> crowd;
  for (int i = 0; i < 20; ++i) crowd.emplace_back(acceptor->port());
  for (int i = 0; i < 16; ++i) {
    const auto answer = crowd[static_cast<std::size_t>(i)].receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(from_wire(answer->header.kind), Code::kBusy);
  }
  TestNode dialer(test_options(1));
  dialer.join(2, acceptor.address());
  EXPECT_EQ(acceptor->counters().refused_crowd, 17u);  // the dialer took the place of one more
}

TEST(Handshake, ALaterLifeReplacesAnEarlierOneAndNeverTheOtherWay) {
  TestNode acceptor(test_options(2));
  RawPeer second(acceptor->port()), third(acceptor->port()), first(acceptor->port());
  ASSERT_TRUE(second.greet(RawPeer::hello(1, 2, 2)));
  ASSERT_TRUE(third.greet(RawPeer::hello(1, 2, 3)));
  EXPECT_TRUE(second.sees_close());
  EXPECT_FALSE(first.greet(RawPeer::hello(1, 2, 1)));
  EXPECT_EQ(acceptor.refusals.take()->code, Code::kStale);
  ASSERT_TRUE(third.send(FrameType::kPing));
  EXPECT_EQ(third.receive()->header.type, FrameType::kPong);
}

TEST(Handshake, TooManyPeersAreRefused) {
  TcpOptions options = test_options(2);
  options.sessions_max = 2;
  TestNode acceptor(options);
  RawPeer a(acceptor->port()), b(acceptor->port()), c(acceptor->port());
  EXPECT_TRUE(a.greet(RawPeer::hello(11, 2)));
  EXPECT_TRUE(b.greet(RawPeer::hello(12, 2)));
  EXPECT_FALSE(c.greet(RawPeer::hello(13, 2)));
  EXPECT_EQ(acceptor.refusals.take()->code, Code::kBusy);
}

TEST(Handshake, OptionsThatCannotBeAreInvalid) {
  const auto clock = make_real_clock();
  const auto random = make_real_random();
  TcpOptions options = test_options(1);
  EXPECT_TRUE(make_tcp_transport(*clock, *random, options));
  options.secret = "short";
  EXPECT_EQ(make_tcp_transport(*clock, *random, options).error().code, Code::kInvalid);
  options = test_options(0);
  EXPECT_EQ(make_tcp_transport(*clock, *random, options).error().code, Code::kInvalid);
  TestNode first(test_options(1));
  options = test_options(2);
  options.listen = first.address();
  auto second = make_tcp_transport(*clock, *random, options).value();
  EXPECT_EQ(second->start({}).error().code, Code::kBusy);
  options.listen = "nowhere";
  auto third = make_tcp_transport(*clock, *random, options).value();
  EXPECT_EQ(third->start({}).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace kvsyncfs
