// Requests and replies between two good nodes.
#include "tests/engine/net/net_fixture.h"

namespace kvsyncfs {
namespace {

class TransportRequest : public ::testing::Test {
 protected:
  void SetUp() override { asker_.join(2, server_.address()); }

  TestNode server_{test_options(2)};
  TestNode asker_{test_options(1)};
};

TEST_F(TransportRequest, AReplyComesBackToItsCall) {
  const AlignedBuffer body = noise(100'000);
  const AlignedBuffer back = noise(70'000, 2);
  AlignedBuffer room(100'000);
  Asked asked;
  ASSERT_TRUE(asked.call(asker_, 2, "question", body.bytes(), room.bytes()));
  auto request = server_.requests.take();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->incoming.peer, NodeId{1});
  EXPECT_EQ(request->incoming.incarnation, Incarnation{1});
  EXPECT_EQ(request->incoming.kind, 7);
  EXPECT_EQ(request->incoming.head, "question");
  EXPECT_TRUE(same(request->incoming.body.bytes(), body.bytes()));
  const std::uint64_t now_ns = asker_.now_ns();
  EXPECT_GT(request->incoming.deadline_ns, now_ns + 20 * kSecondNs);
  EXPECT_LE(request->incoming.deadline_ns, now_ns + 30 * kSecondNs);
  answer_with(*request, "answer", back.bytes());
  const auto reply = asked.answer();
  ASSERT_TRUE(reply) << describe(reply.error());
  EXPECT_EQ(reply->head, "answer");
  EXPECT_EQ(reply->body_size, back.size());
  EXPECT_TRUE(same(room.bytes().first(back.size()), back.bytes()));
}

TEST_F(TransportRequest, EmptyAndLargestMessagesArrive) {
  const AlignedBuffer body = noise(kTransferSizeMax);
  AlignedBuffer room(kTransferSizeMax);
  Asked asked;
  const std::string head(kMessageHeadSizeMax, 'h');
  ASSERT_TRUE(asked.call(asker_, 2, head, body.bytes(), room.bytes()));
  auto request = server_.requests.take();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->incoming.head, head);
  answer_with(*request, head, request->incoming.body.bytes());
  ASSERT_TRUE(asked.answer());
  EXPECT_TRUE(same(room.bytes(), body.bytes()));

  ASSERT_TRUE(asked.call(asker_, 2, ""));
  request = server_.requests.take();
  ASSERT_TRUE(request);
  answer_with(*request, "");
  const auto reply = asked.answer();
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->head.empty());
  EXPECT_EQ(reply->body_size, 0u);
}

TEST_F(TransportRequest, MessagesBeyondTheLimitsAreRefused) {
  const AlignedBuffer big(kTransferSizeMax + 1);
  AlignedBuffer room(kTransferSizeMax + 1);
  Asked asked;
  EXPECT_EQ(asked.call(asker_, 2, std::string(kMessageHeadSizeMax + 1, 'h')).error().code,
            Code::kTooBig);
  EXPECT_EQ(asked.call(asker_, 2, "", big.bytes()).error().code, Code::kTooBig);
  EXPECT_EQ(asked.call(asker_, 2, "", {}, room.bytes()).error().code, Code::kTooBig);
  EXPECT_EQ(asked.read(asker_, 2, {1}, 0, room.bytes()).error().code, Code::kTooBig);
  ASSERT_TRUE(asked.call(asker_, 2, "the answer will be too big"));
  auto request = server_.requests.take();
  ASSERT_TRUE(request);
  answer_with(*request, "", big.bytes());
  EXPECT_EQ(asked.error(), Code::kTooBig);
}

TEST_F(TransportRequest, RepliesOutOfOrderFindTheirCalls) {
  constexpr std::size_t kCount = 100;
  std::vector<Asked> asked(kCount);
  std::vector<AlignedBuffer> rooms;
  for (std::size_t i = 0; i < kCount; ++i) rooms.emplace_back(5000);
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_TRUE(asked[i].call(asker_, 2, std::to_string(i), {}, rooms[i].bytes()));
  std::vector<Request> requests;
  for (std::size_t i = 0; i < kCount; ++i) requests.push_back(std::move(*server_.requests.take()));
  std::vector<AlignedBuffer> bodies;
  for (std::size_t i = 0; i < kCount; ++i) bodies.push_back(noise(5000, static_cast<unsigned>(i)));
  for (std::size_t i = kCount; i-- > 0;)
    answer_with(requests[i], "re " + requests[i].incoming.head, bodies[i].bytes());
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto reply = asked[i].answer();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->head, "re " + std::to_string(i));
    EXPECT_TRUE(same(rooms[i].bytes(), bodies[i].bytes()));
  }
}

TEST_F(TransportRequest, RequestsArriveInTheOrderOfTheirCalls) {
  std::vector<Asked> asked(50);
  for (std::size_t i = 0; i < asked.size(); ++i)
    ASSERT_TRUE(asked[i].call(asker_, 2, std::to_string(i)));
  for (std::size_t i = 0; i < asked.size(); ++i)
    EXPECT_EQ(server_.requests.take()->incoming.head, std::to_string(i));
}

TEST_F(TransportRequest, ManyThreadsMayAskAtOnce) {
  TestNode echo(test_options(3), [](Incoming in, Responder out) {
    const auto body = std::make_shared<AlignedBuffer>(std::move(in.body));
    out.reply(Answer{in.head, Payload{body->bytes(), body}});
  });
  asker_.join(3, echo.address());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (unsigned i = 0; i < 300; ++i) {
        const AlignedBuffer body = noise(1 + (i * 997) % 40'000, i + 1000 * t);
        AlignedBuffer room(body.size());
        Asked asked;
        const std::string head = std::to_string(t) + "/" + std::to_string(i);
        ASSERT_TRUE(asked.call(asker_, 3, head, body.bytes(), room.bytes()));
        const auto reply = asked.answer();
        ASSERT_TRUE(reply) << describe(reply.error());
        EXPECT_EQ(reply->head, head);
        EXPECT_TRUE(same(room.bytes(), body.bytes()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(asker_.peer(3).counts.round_trips, 1200u);
  EXPECT_EQ(asker_.peer(3).counts.messages_sent, 1200u);
  EXPECT_EQ(echo.peer(1).counts.messages_received, 1200u);
}

TEST_F(TransportRequest, ErrorsOfTheHandlerComeBack) {
  Asked asked;
  ASSERT_TRUE(asked.call(asker_, 2, "x"));
  server_.requests.take()->responder.reply(Error(Code::kNoSpace, "the store of node 2"));
  const auto reply = asked.answer();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kNoSpace);
  EXPECT_NE(reply.error().detail.find("the store of node 2"), std::string::npos);
}

TEST_F(TransportRequest, ADroppedResponderAnswersShutdown) {
  Asked asked;
  ASSERT_TRUE(asked.call(asker_, 2, "x"));
  server_.requests.take();
  EXPECT_EQ(asked.error(), Code::kShutdown);
}

TEST_F(TransportRequest, AReplyBeyondTheCallersBufferIsRangeAndTouchesNothing) {
  const AlignedBuffer body = noise(1001);
  AlignedBuffer room(1000);
  std::memset(room.data(), 0x55, room.size());
  Asked asked;
  ASSERT_TRUE(asked.call(asker_, 2, "x", {}, room.bytes()));
  answer_with(*server_.requests.take(), "", body.bytes());
  EXPECT_EQ(asked.error(), Code::kRange);
  for (const std::byte byte : room.bytes()) ASSERT_EQ(byte, std::byte{0x55});
}

TEST_F(TransportRequest, TheDeadlineEndsACallAndALateReplyIsDropped) {
  AlignedBuffer room(1000);
  std::memset(room.data(), 0x55, room.size());
  const AlignedBuffer body = noise(1000);
  Asked asked, next;
  const std::uint64_t begin_ns = asker_.now_ns();
  ASSERT_TRUE(asked.call(asker_, 2, "slow", {}, room.bytes(), kSecondNs / 20));
  auto request = server_.requests.take();
  EXPECT_EQ(asked.error(), Code::kTimeout);
  const std::uint64_t waited_ns = asker_.now_ns() - begin_ns;
  EXPECT_GE(waited_ns, kSecondNs / 20);
  EXPECT_LT(waited_ns, 5 * kSecondNs);
  answer_with(*request, "late", body.bytes());
  ASSERT_TRUE(next.call(asker_, 2, "next"));  // behind the late reply
  answer_with(*server_.requests.take(), "in time");
  EXPECT_EQ(next.answer()->head, "in time");
  EXPECT_FALSE(asked.is_done());
  for (const std::byte byte : room.bytes()) ASSERT_EQ(byte, std::byte{0x55});
  const PeerStatus status = asker_.peer(2);
  EXPECT_EQ(status.counts.timeouts, 1u);
  EXPECT_EQ(status.counts.late_replies, 1u);
  EXPECT_EQ(status.outstanding_calls, 0u);
  EXPECT_EQ(status.outstanding_read_bytes, 0u);
}

TEST_F(TransportRequest, APassedDeadlineIsRefusedAtOnce) {
  Call call;
  call.deadline_ns = asker_.now_ns();
  call.done = [](const Result<Reply>&) { ADD_FAILURE() << "refused and done"; };
  EXPECT_EQ(asker_->call({2}, std::move(call)).error().code, Code::kTimeout);
}

TEST_F(TransportRequest, ABodyIsKeptUntilItIsSent) {
  auto body = std::make_shared<AlignedBuffer>(noise(4 << 20));
  const AlignedBuffer expected = noise(4 << 20);
  Call call;
  call.body = Payload{body->bytes(), body};
  call.deadline_ns = asker_.now_ns() + 30 * kSecondNs;
  Inbox<Result<Reply>> answers;
  call.done = [&](Result<Reply> reply) { answers.put(std::move(reply)); };
  ASSERT_TRUE(asker_->call({2}, std::move(call)));
  body.reset();
  auto request = server_.requests.take();
  EXPECT_TRUE(same(request->incoming.body.bytes(), expected.bytes()));
  answer_with(*request, "");
  EXPECT_TRUE(answers.take()->has_value());
}

TEST_F(TransportRequest, StopEndsEveryCall) {
  Asked sent;
  ASSERT_TRUE(sent.call(asker_, 2, "x"));
  auto request = server_.requests.take();
  asker_.stop();
  EXPECT_EQ(sent.error(), Code::kShutdown);
  EXPECT_EQ(sent.call(asker_, 2, "x").error().code, Code::kShutdown);
  answer_with(*request, "nobody hears this");
}

}  // namespace
}  // namespace kvsyncfs
