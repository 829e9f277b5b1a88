// What may be sent when: credits, the budget of all peers, order, deadlines. No socket, no clock.
#include "engine/net/tcp/call_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvsyncfs {
namespace {

class CallTableTest : public ::testing::Test {
 protected:
  CallTableTest() { table_.set_credits({4, 1000}); }

  PendingCall call(std::size_t size, std::size_t out_size = 0, std::uint64_t deadline_ns = 100) {
    PendingCall call;
    call.head = std::string(size, 'h');
    call.out = MutableBytes(memory_).first(out_size);
    call.deadline_ns = deadline_ns;
    call.done = [](const Result<Reply>&) {};
    return call;
  }
  std::size_t send_all() { return send_all(table_); }
  static std::size_t send_all(CallTable& table) {
    std::size_t count = 0;
    while (table.next()) ++count;
    return count;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(10'000);
  ReadBudget budget_{6000, 4000};
  CallTable table_{budget_, 8, 2000};
};

TEST_F(CallTableTest, WhatWaitsIsBoundedInCountAndBytes) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(table_.add(call(10)));
  EXPECT_EQ(table_.add(call(10)).error().code, Code::kBusy);
  EXPECT_EQ(table_.waiting_count(), 8u);
  EXPECT_EQ(table_.waiting_bytes(), 80u);
  CallTable bytes(budget_, 100, 2000);
  ASSERT_TRUE(bytes.add(call(1999)));
  ASSERT_TRUE(bytes.add(call(1)));
  EXPECT_EQ(bytes.add(call(1)).error().code, Code::kBusy);
  CallTable single(budget_, 100, 2000);
  EXPECT_TRUE(single.add(call(5000))) << "one alone may be larger";
}

TEST_F(CallTableTest, UnansweredCallsHoldTheCreditsOfThePeer) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(table_.add(call(10)));
  EXPECT_EQ(send_all(), 4u);
  EXPECT_TRUE(table_.answer(1, Reply{}));
  EXPECT_EQ(send_all(), 1u);
  EXPECT_EQ(table_.sent_count(), 4u);
}

TEST_F(CallTableTest, UnansweredBytesHoldTheCreditsOfThePeer) {
  ASSERT_TRUE(table_.add(call(600)));
  ASSERT_TRUE(table_.add(call(600)));
  EXPECT_EQ(send_all(), 1u);
  EXPECT_TRUE(table_.answer(1, Reply{}));
  EXPECT_EQ(send_all(), 1u);
}

TEST_F(CallTableTest, ACallLargerThanTheCreditsGoesAlone) {
  ASSERT_TRUE(table_.add(call(1500)));
  ASSERT_TRUE(table_.add(call(10)));
  EXPECT_EQ(send_all(), 1u);
  EXPECT_TRUE(table_.answer(1, Reply{}));
  EXPECT_EQ(send_all(), 1u);
}

TEST_F(CallTableTest, BytesThatOnePeerMaySendAreBounded) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table_.add(call(1, 2000)));
  EXPECT_EQ(send_all(), 2u);
  EXPECT_EQ(table_.outstanding_bytes(), 4000u);
  EXPECT_TRUE(table_.answer(1, Reply{}));
  EXPECT_TRUE(table_.take_released());
  EXPECT_EQ(send_all(), 1u);
}

TEST_F(CallTableTest, BytesThatAllPeersMaySendAreBoundedButEachMaySendOne) {
  CallTable other(budget_, 8, 2000), third(budget_, 8, 2000);
  other.set_credits({4, 1000});
  third.set_credits({4, 1000});
  for (CallTable* table : {&table_, &other, &third})
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(table->add(call(1, 2000)));
  EXPECT_EQ(send_all(table_), 2u);
  EXPECT_EQ(send_all(other), 1u);
  EXPECT_EQ(send_all(third), 1u) << "beyond the sum, but it has none";
  EXPECT_EQ(budget_.peak(), 8000u);
  EXPECT_TRUE(table_.answer(1, Reply{}));
  EXPECT_TRUE(table_.take_released());
  EXPECT_EQ(send_all(other), 0u) << "still at the sum";
  EXPECT_TRUE(table_.answer(2, Reply{}));
  EXPECT_EQ(send_all(other), 1u);
}

TEST_F(CallTableTest, ACallThatWasGivenUpKeepsItsPlaceUntilTheAnswer) {
  ASSERT_TRUE(table_.add(call(10, 4000, 50)));
  ASSERT_TRUE(table_.add(call(10, 4000, 900)));
  EXPECT_EQ(send_all(), 1u);
  std::vector<std::uint64_t> given_up;
  EXPECT_EQ(table_.expire(49, &given_up).size(), 0u);
  const auto finished = table_.expire(50, &given_up);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].result.error().code, Code::kTimeout);
  EXPECT_EQ(given_up, std::vector<std::uint64_t>{1});
  EXPECT_EQ(send_all(), 0u) << "its bytes are still on their way";
  EXPECT_TRUE(table_.find_sent(1)->out.empty()) << "nothing may be written there";
  EXPECT_FALSE(table_.answer(1, Reply{})) << "nobody waits";
  EXPECT_EQ(send_all(), 1u);
}

TEST_F(CallTableTest, AWaitingCallThatWasGivenUpIsNeverSent) {
  table_.set_credits({1, 1000});
  ASSERT_TRUE(table_.add(call(10, 0, 900)));
  ASSERT_TRUE(table_.add(call(10, 0, 50)));
  ASSERT_TRUE(table_.add(call(10, 0, 900)));
  EXPECT_EQ(send_all(), 1u);
  std::vector<std::uint64_t> given_up;
  EXPECT_EQ(table_.expire(50, &given_up).size(), 1u);
  EXPECT_TRUE(given_up.empty());
  EXPECT_EQ(table_.waiting_bytes(), 10u);
  EXPECT_TRUE(table_.answer(1, Reply{}));
  EXPECT_EQ(table_.next()->number, 3u);
}

TEST_F(CallTableTest, FailureTellsWhatWasSentFromWhatWasNot) {
  table_.set_credits({1, 1000});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table_.add(call(10, 1000)));
  EXPECT_EQ(send_all(), 1u);
  int sent = 0, waiting = 0;
  for (const auto& finished : table_.fail(Code::kDisconnected, Code::kUnreachable))
    ++(finished.result.error().code == Code::kDisconnected ? sent : waiting);
  EXPECT_EQ(sent, 1);
  EXPECT_EQ(waiting, 2);
  EXPECT_EQ(table_.sent_count() + table_.waiting_count(), 0u);
  EXPECT_EQ(table_.outstanding_bytes() + table_.waiting_bytes(), 0u);
  EXPECT_EQ(table_.due_ns(), ~std::uint64_t{0});
  EXPECT_TRUE(budget_.try_take(4000, 0));
  EXPECT_FALSE(budget_.try_take(1, 4000)) << "above the peer's share";
  EXPECT_TRUE(budget_.try_take(1, 3999)) << "all was given back";
}

}  // namespace
}  // namespace kvsyncfs
