// A change returns when all sessions that lived at its position have said so, or have ended.
#include "engine/sync/acknowledgements.h"

#include <thread>

#include "engine/env/real.h"
#include "engine/format/peer_message.h"
#include "tests/engine/sync/loop_transport.h"

namespace kvsyncfs {
namespace {

constexpr NodeId kSelf{1}, kB{2}, kC{3};
constexpr std::uint64_t kSecond = 1'000'000'000;

SessionRecord lives(std::uint64_t joined_at, std::uint64_t incarnation) {
  SessionRecord record;
  record.session = {id_at({joined_at}, 0)};
  record.incarnation = {incarnation};
  return record;
}

class AcknowledgementsTest : public ::testing::Test {
 protected:
  Status wait(std::uint64_t position, std::uint64_t timeout_ns) {
    return acks_.wait(
        {position}, kSelf,
        [this] {
          std::lock_guard lock(mutex_);
          return sessions_;
        },
        Deadline(*clock_, timeout_ns));
  }
  bool passes(std::uint64_t position) { return wait(position, 0).has_value(); }

  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::mutex mutex_;
  Acknowledgements::Sessions sessions_{{kSelf, lives(1, 1)}, {kB, lives(2, 5)}};
  Acknowledgements acks_;
};

TEST_F(AcknowledgementsTest, ALoneSessionWaitsForNobody) {
  sessions_.erase(kB);
  EXPECT_TRUE(passes(10));
}

TEST_F(AcknowledgementsTest, MissingWordIsATimeoutThatNamesTheNode) {
  const Status status = wait(10, 0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kTimeout);
  EXPECT_NE(status.error().detail.find("node 2"), std::string::npos);
}

TEST_F(AcknowledgementsTest, OwnSessionThatEndedWaitsForNobody) {
  sessions_.at(kSelf).ended = {9};
  const std::uint64_t start_ns = clock_->boot_ns();
  EXPECT_EQ(wait(10, 30 * kSecond).error().code, Code::kTimeout);
  EXPECT_LT(clock_->boot_ns() - start_ns, 10 * kSecond);
}

TEST_F(AcknowledgementsTest, WordsAreCumulativeAndNeverGoBack) {
  acks_.note(kB, {5}, {10});
  EXPECT_TRUE(passes(10));
  EXPECT_TRUE(passes(9));
  EXPECT_FALSE(passes(11));
  acks_.note(kB, {5}, {7});
  EXPECT_TRUE(passes(10));
}

TEST_F(AcknowledgementsTest, WordOfAnotherLifeDoesNotCount) {
  acks_.note(kB, {4}, {10});
  EXPECT_FALSE(passes(10));
  acks_.note(kB, {6}, {10});
  EXPECT_FALSE(passes(10)) << "the session in the catalog is life 5";
  sessions_[kB] = lives(3, 6);
  EXPECT_TRUE(passes(10));
  acks_.note(kB, {5}, {20});
  EXPECT_FALSE(passes(20)) << "a late word of the former life";
}

TEST_F(AcknowledgementsTest, SessionThatJoinedLaterIsNotAwaited) {
  sessions_[kC] = lives(11, 1);
  acks_.note(kB, {5}, {10});
  EXPECT_TRUE(passes(10));
  EXPECT_FALSE(passes(11));
}

TEST_F(AcknowledgementsTest, EndOfASessionEndsTheWait) {
  std::thread other([this] {
    while (!acks_.awaited().contains(kB)) std::this_thread::yield();
    {
      std::lock_guard lock(mutex_);
      sessions_[kB].ended = {12};
    }
    acks_.sessions_changed();
  });
  EXPECT_TRUE(wait(10, 30 * kSecond));
  other.join();
  EXPECT_TRUE(acks_.awaited().empty());
}

TEST_F(AcknowledgementsTest, TheLastWordEndsTheWait) {
  sessions_[kC] = lives(3, 7);
  std::thread other([this] {
    while (!acks_.awaited().contains(kB)) std::this_thread::yield();
    acks_.note(kB, {5}, {10});
    while (!acks_.awaited().contains(kC)) std::this_thread::yield();
    acks_.note(kC, {7}, {10});
  });
  EXPECT_TRUE(wait(10, 30 * kSecond));
  other.join();
}

class AcknowledgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransportHandlers handlers;
    handlers.on_request = [this](Incoming request, Responder responder) {
      last_ = decode_acknowledge(request.head).value();
      heard_.push_back(last_.position.value);
      if (refusal_) return responder.reply(*refusal_);
      if (keep_) return kept_.push_back(std::move(responder));
      responder.reply(Answer{});
    };
    ASSERT_TRUE(b_.start(std::move(handlers)));
  }
  std::unique_ptr<Clock> clock_ = make_real_clock();
  LoopNet net_;
  LoopTransport self_{net_, kSelf}, b_{net_, kB};
  Acknowledger acknowledger_{self_, *clock_, Incarnation{1}};
  std::vector<std::uint64_t> heard_;
  Acknowledge last_;
  std::optional<Error> refusal_;
  bool keep_ = false;
  std::vector<Responder> kept_;
};

TEST_F(AcknowledgerTest, OneMessageTellsAllThatIsOwed) {
  for (std::uint64_t position = 1; position <= 9; ++position)
    acknowledger_.owe(kB, {2}, {position});
  acknowledger_.send();
  acknowledger_.send();
  EXPECT_EQ(heard_, (std::vector<std::uint64_t>{9}));
}

TEST_F(AcknowledgerTest, WhatComesWhileAMessageIsOnItsWayGoesWithTheNext) {
  keep_ = true;
  acknowledger_.owe(kB, {2}, {1});
  acknowledger_.send();
  for (std::uint64_t position = 2; position <= 5; ++position) {
    acknowledger_.owe(kB, {2}, {position});
    acknowledger_.send();
  }
  EXPECT_EQ(heard_, (std::vector<std::uint64_t>{1}));
  keep_ = false;
  kept_[0].reply(Answer{});
  EXPECT_EQ(heard_, (std::vector<std::uint64_t>{1, 5}));
}

TEST_F(AcknowledgerTest, WhatAPeerDidNotGetIsSentAgain) {
  net_.down.insert(kB);
  acknowledger_.owe(kB, {2}, {3});
  acknowledger_.send();
  EXPECT_TRUE(heard_.empty());
  net_.down.clear();
  acknowledger_.send();
  EXPECT_EQ(heard_, (std::vector<std::uint64_t>{3}));
}

TEST_F(AcknowledgerTest, WhatAnEarlierLifeTookIsToldAgain) {
  keep_ = true;
  acknowledger_.owe(kB, {2}, {3});
  acknowledger_.send();
  acknowledger_.owe(kB, {5}, {3});
  keep_ = false;
  kept_[0].reply(Answer{});
  EXPECT_EQ(heard_, (std::vector<std::uint64_t>{3, 3}));
  EXPECT_EQ(last_.to, Incarnation{5});
  acknowledger_.owe(kB, {2}, {3});  // nobody waits there any more
  acknowledger_.send();
  EXPECT_EQ(heard_.size(), 2u);
}

TEST_F(AcknowledgerTest, WhatGoesAlongIsThatOfTheSending) {
  std::uint32_t digest = 1;
  acknowledger_.carry([&](Position p) { return Acknowledge{p, {1000}, digest, {}, {}}; }, [] {});
  acknowledger_.owe(kB, {2}, {1001});
  digest = 2;
  acknowledger_.send();
  EXPECT_EQ(last_, (Acknowledge{{1001}, {1000}, 2, {1}, {2}}));
}

TEST_F(AcknowledgerTest, APeerThatCallsTheCatalogWrongHasNotTakenTheWord) {
  int wrong = 0;
  acknowledger_.carry([](Position p) { return Acknowledge{p, {}, 0, {}, {}}; }, [&] { ++wrong; });
  acknowledger_.owe(kB, {2}, {7});
  refusal_ = Error(Code::kTimeout, "late");
  acknowledger_.send();
  refusal_ = Error(Code::kCorrupt, "not understood");
  acknowledger_.send();
  EXPECT_EQ(wrong, 0);
  refusal_ = Error(Code::kFenced, "wrong");
  acknowledger_.send();
  EXPECT_EQ(wrong, 1);
  refusal_.reset();
  acknowledger_.send();
  EXPECT_EQ(heard_, (std::vector<std::uint64_t>{7, 7, 7, 7}));
}

TEST_F(AcknowledgerTest, WhoWaitsForAWordIsOverdue) {
  net_.down.insert(kB);
  EXPECT_TRUE(acknowledger_.overdue(0).empty());
  acknowledger_.owe(kB, {2}, {3});
  acknowledger_.send();
  EXPECT_EQ(acknowledger_.overdue(0), std::set<NodeId>{kB});
  EXPECT_TRUE(acknowledger_.overdue(3600 * kSecond).empty());
  net_.down.clear();
  acknowledger_.send();
  EXPECT_TRUE(acknowledger_.overdue(0).empty());
}

TEST_F(AcknowledgerTest, AWordNamesTheSessionThatIsLivedNow) {
  acknowledger_.owe(kB, {2}, {3});
  acknowledger_.send();
  EXPECT_EQ(last_.incarnation, Incarnation{1});
  acknowledger_.begin({4});
  acknowledger_.owe(kB, {2}, {5});
  acknowledger_.send();
  EXPECT_EQ(last_.incarnation, Incarnation{4});
}

}  // namespace
}  // namespace kvsyncfs
