#include "engine/lock_waits.h"

#include <gtest/gtest.h>

#include <string>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kOwner = 7, kWait = 1025;
const AcquireLockCommand kWanted{
    {5}, LockKind::kFlock, LockType::kExclusive, kOwner, 0, kLockEndMax, 1, true};

CommandResult waits_as(std::uint64_t wait) {
  CommandResult result;
  result.wait = wait;
  return result;
}

CommandResult refused(Code code) {
  CommandResult result;
  result.status = code;
  return result;
}

class LockWaitsTest : public testing::Test {
 protected:
  std::uint64_t sent() {
    const std::uint64_t request = waits_.begin([](const LockAnswer&) {});
    EXPECT_TRUE(waits_.send(request, kWanted));
    waits_.numbered(request, ++number_);
    return request;
  }
  std::uint64_t queued() {
    const std::uint64_t request = sent();
    waits_.applied(number_, waits_as(kWait));
    waits_.returned(request, {});
    return request;
  }
  /// "-": none is due; else how the request ended.
  std::string answer() {
    const auto ended = waits_.take_ended({});
    if (!ended) return "-";
    EXPECT_TRUE(ended->done) << "an answer to nobody";
    if (ended->interrupted) return "interrupted";
    return ended->status ? "held" : std::string(to_string(ended->status.error().code));
  }
  /// "-": none; else the command.
  std::string debt() {
    const auto owed = waits_.take_owed({});
    if (!owed) return "-";
    if (const auto* c = std::get_if<CancelLockCommand>(&*owed))
      return "cancel " + std::to_string(c->wait);
    const auto* c = std::get_if<ReleaseLockCommand>(&*owed);
    return c != nullptr ? "release " + std::to_string(c->owner) : "?";
  }

  LockWaits waits_;
  std::uint64_t number_ = 0;
};

TEST_F(LockWaitsTest, ALockThatIsFreeIsAnsweredOnceWhenItsCommandReturns) {
  const std::uint64_t request = sent();
  waits_.applied(number_, {});
  EXPECT_EQ(answer(), "-");
  waits_.returned(request, {});
  EXPECT_EQ(answer(), "held");
  EXPECT_EQ(answer(), "-");
}

TEST_F(LockWaitsTest, AVerdictOfTheLogIsTheAnswerEvenIfAnAcknowledgementIsMissing) {
  std::uint64_t request = sent();
  waits_.applied(number_, {});
  waits_.returned(request, Code::kTimeout);
  EXPECT_EQ(answer(), "held");
  request = sent();
  waits_.applied(number_, refused(Code::kDeadlock));
  waits_.returned(request, Code::kDeadlock);
  EXPECT_EQ(answer(), to_string(Code::kDeadlock));
  EXPECT_EQ(debt(), "-");
}

TEST_F(LockWaitsTest, AGrantThatComesBeforeTheCommandReturnsIsNotLost) {
  const std::uint64_t request = sent();
  waits_.applied(number_, waits_as(kWait));
  waits_.granted(kWait);
  EXPECT_EQ(answer(), "held");
  waits_.returned(request, {});
  EXPECT_EQ(answer(), "-");
}

TEST_F(LockWaitsTest, AWaitEndsByItsOwnGrantOnly) {
  queued();
  waits_.granted(kWait + 1);
  EXPECT_EQ(answer(), "-");
  waits_.granted(kWait);
  EXPECT_EQ(answer(), "held");
}

TEST_F(LockWaitsTest, AWaitWhoseCommandMissesAnAcknowledgementGoesOn) {
  const std::uint64_t request = sent();
  waits_.applied(number_, waits_as(kWait));
  waits_.returned(request, Code::kTimeout);
  EXPECT_EQ(answer(), "-");
  waits_.granted(kWait);
  EXPECT_EQ(answer(), "held");
}

TEST_F(LockWaitsTest, ASignalEndsAWaitOnceTheLogHasCancelledIt) {
  const std::uint64_t request = queued();
  waits_.cancel(request);
  waits_.cancel(request);
  EXPECT_EQ(answer(), "-");
  EXPECT_EQ(debt(), "cancel 1025");
  EXPECT_EQ(debt(), "-");
  waits_.cancelled(kWait);
  EXPECT_EQ(answer(), "interrupted");
}

TEST_F(LockWaitsTest, AGrantThatTheLogHasBeforeTheCancelIsTheAnswer) {
  const std::uint64_t request = queued();
  waits_.cancel(request);
  waits_.granted(kWait);
  waits_.cancelled(kWait);
  EXPECT_EQ(answer(), "held");
  EXPECT_EQ(answer(), "-");
}

TEST_F(LockWaitsTest, ASignalBeforeTheCommandIsSentSparesIt) {
  const std::uint64_t request = waits_.begin([](const LockAnswer&) {});
  waits_.cancel(request);
  EXPECT_FALSE(waits_.send(request, kWanted));
  EXPECT_EQ(answer(), "interrupted");
}

TEST_F(LockWaitsTest, ASignalWhileTheCommandIsOnItsWayEndsTheWaitThatItBecomes) {
  const std::uint64_t request = sent();
  waits_.cancel(request);
  EXPECT_EQ(debt(), "-");
  waits_.applied(number_, waits_as(kWait));
  EXPECT_EQ(debt(), "cancel 1025");
}

TEST_F(LockWaitsTest, WhatTheLogGivesToAnAbandonedRequestIsOwedBack) {
  waits_.returned(sent(), Code::kTimeout);
  EXPECT_EQ(answer(), to_string(Code::kTimeout));
  EXPECT_TRUE(waits_.is_on_its_way({5}, LockKind::kFlock, kOwner));
  waits_.applied(number_, {});
  EXPECT_EQ(debt(), "release 7");
  EXPECT_FALSE(waits_.is_on_its_way({5}, LockKind::kFlock, kOwner));

  waits_.returned(sent(), Code::kTimeout);
  EXPECT_EQ(answer(), to_string(Code::kTimeout));
  waits_.applied(number_, waits_as(kWait));
  EXPECT_EQ(debt(), "cancel 1025");
  waits_.granted(kWait);
  EXPECT_EQ(debt(), "release 7");
  EXPECT_EQ(answer(), "-");
}

TEST_F(LockWaitsTest, AnAbandonedRequestThatNeverLandsTakesNothingFromTheNext) {
  waits_.returned(sent(), Code::kTimeout);
  EXPECT_EQ(answer(), to_string(Code::kTimeout));
  const std::uint64_t retry = sent();  // the same lock again, and only this one is applied
  waits_.applied(number_, {});
  waits_.passed(number_);
  waits_.returned(retry, {});
  EXPECT_EQ(answer(), "held");
  EXPECT_EQ(debt(), "-");
  EXPECT_FALSE(waits_.is_on_its_way({5}, LockKind::kFlock, kOwner));
}

TEST_F(LockWaitsTest, WhatIsOwedIsKnownUntilItIsPaid) {
  const ReleaseLockCommand release{{5}, LockKind::kFlock, kOwner};
  waits_.owe(release);
  EXPECT_TRUE(waits_.owes({5}, LockKind::kFlock, kOwner));
  EXPECT_FALSE(waits_.owes({5}, LockKind::kPosix, kOwner));
  EXPECT_EQ(debt(), "release 7");
  EXPECT_TRUE(waits_.owes({5}, LockKind::kFlock, kOwner));
  waits_.paid();
  EXPECT_FALSE(waits_.owes({5}, LockKind::kFlock, kOwner));
}

TEST_F(LockWaitsTest, WhatWasSentInASessionEndsWithItAndWhatWasNotGoesOnInTheNext) {
  queued();
  sent();
  const std::uint64_t next = waits_.begin([](const LockAnswer&) {});
  waits_.owe(ReleaseLockCommand{{5}, LockKind::kFlock, kOwner, 0, kLockEndMax});
  waits_.session_ended();
  const std::string lost(to_string(Code::kIo));
  EXPECT_EQ(answer(), lost);
  EXPECT_EQ(answer(), lost);
  EXPECT_EQ(answer(), "-");
  EXPECT_EQ(debt(), "-");
  ASSERT_TRUE(waits_.send(next, kWanted));
  number_ = 1;  // the next session counts anew
  waits_.numbered(next, number_);
  waits_.applied(number_, {});
  waits_.returned(next, {});
  EXPECT_EQ(answer(), "held");
}

TEST_F(LockWaitsTest, TheEndOfTheSessionIsTheAnswerToAllAndForgetsWhatIsOwed) {
  const std::uint64_t request = queued();
  waits_.cancel(request);
  sent();
  waits_.fail_all(Code::kShutdown);
  EXPECT_EQ(answer(), to_string(Code::kShutdown));
  EXPECT_EQ(answer(), to_string(Code::kShutdown));
  EXPECT_EQ(answer(), "-");
  EXPECT_EQ(debt(), "-");
}

}  // namespace
}  // namespace kvsyncfs
