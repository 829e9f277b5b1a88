// Reads of registered regions, which no handler answers.
#include "tests/engine/net/net_fixture.h"

namespace kvsyncfs {
namespace {

class TransportRegion : public ::testing::Test {
 protected:
  void SetUp() override {
    asker_.join(2, server_.address());
    key_ = server_->register_region(memory_.bytes()).value();
  }

  AlignedBuffer memory_ = noise(12u << 20);
  TestNode server_{test_options(2)};
  TestNode asker_{test_options(1)};
  RegionKey key_;
};

TEST_F(TransportRegion, BytesComeIntoTheCallersBuffer) {
  for (const std::size_t size :
       {std::size_t{1}, kPageSize, std::size_t{70'001}, std::size_t{1 << 20}, kTransferSizeMax}) {
    AlignedBuffer out(size);
    Asked asked;
    ASSERT_TRUE(asked.read(asker_, 2, key_, 12'345, out.bytes()));
    ASSERT_TRUE(asked.answer());
    EXPECT_TRUE(same(out.bytes(), memory_.bytes().subspan(12'345, size))) << size;
  }
}

TEST_F(TransportRegion, ARegionEndsWhereItEnds) {
  AlignedBuffer out(kPageSize);
  Asked asked;
  ASSERT_TRUE(asked.read(asker_, 2, key_, memory_.size() - kPageSize, out.bytes()));
  EXPECT_TRUE(asked.answer());
  for (const std::uint64_t offset :
       {std::uint64_t{memory_.size() - kPageSize + 1}, std::uint64_t{memory_.size()},
        ~std::uint64_t{0}, ~std::uint64_t{0} - kPageSize + 1}) {
    ASSERT_TRUE(asked.read(asker_, 2, key_, offset, out.bytes()));
    EXPECT_EQ(asked.error(), Code::kInvalid) << offset;
  }
}

TEST_F(TransportRegion, AKeyIsStaleOnceTheRegionIsGone) {
  AlignedBuffer out(kPageSize);
  Asked asked;
  ASSERT_TRUE(asked.read(asker_, 2, {key_.value + 1}, 0, out.bytes()));
  EXPECT_EQ(asked.error(), Code::kStale);
  server_->unregister_region(key_);
  server_->unregister_region(key_);
  const RegionKey again = server_->register_region(memory_.bytes()).value();
  EXPECT_NE(again, key_);
  ASSERT_TRUE(asked.read(asker_, 2, key_, 0, out.bytes()));
  EXPECT_EQ(asked.error(), Code::kStale);
  ASSERT_TRUE(asked.read(asker_, 2, again, 0, out.bytes()));
  EXPECT_TRUE(asked.answer());
}

TEST_F(TransportRegion, NothingReadsTheMemoryAfterUnregister) {
  // Reads are on their way while the region goes; then the memory is freed, which a sanitizer sees.
  AlignedBuffer out(kTransferSizeMax);
  std::size_t whole = 0, stale = 0;
  for (int round = 0; round < 30; ++round) {
    auto memory = std::make_unique<AlignedBuffer>(kTransferSizeMax);
    std::memset(memory->data(), 0x77, memory->size());
    const RegionKey key = server_->register_region(memory->bytes()).value();
    Asked asked;
    ASSERT_TRUE(asked.read(asker_, 2, key, 0, out.bytes()));
    server_->unregister_region(key);
    std::memset(memory->data(), 0, memory->size());
    memory.reset();
    const auto answer = asked.answer();
    if (answer) {
      ++whole;
      for (std::size_t i = 0; i < out.size(); i += 512) ASSERT_EQ(out.data()[i], std::byte{0x77});
    } else {
      ++stale;
      ASSERT_EQ(answer.error().code, Code::kStale);
    }
  }
  EXPECT_EQ(whole + stale, 30u);
  EXPECT_EQ(server_->counters().bad_frames + asker_->counters().bad_frames, 0u);
}

TEST_F(TransportRegion, AReadCostsOneMessageEachWay) {
  AlignedBuffer out(kPageSize);
  const PeerCounters before = asker_.peer(2).counts;
  for (int i = 0; i < 10; ++i) {
    Asked asked;
    ASSERT_TRUE(asked.read(asker_, 2, key_, 0, out.bytes()));
    ASSERT_TRUE(asked.answer());
  }
  const PeerCounters after = asker_.peer(2).counts;
  EXPECT_EQ(after.messages_sent - before.messages_sent, 10u);
  EXPECT_EQ(after.messages_received - before.messages_received, 10u);
  EXPECT_EQ(after.round_trips - before.round_trips, 10u);
  EXPECT_EQ(after.reads - before.reads, 10u);
  EXPECT_GE(after.bytes_received - before.bytes_received, 10 * kPageSize);
  EXPECT_LT(after.bytes_received - before.bytes_received, 10 * (kPageSize + 200));
}

TEST_F(TransportRegion, ADeadlineInTheMiddleOfABodyLeavesTheBufferAlone) {
  // Large reads with deadlines that pass at any moment; whatever is done is not written any more.
  AlignedBuffer out(kTransferSizeMax);
  for (std::uint64_t timeout_us = 200; timeout_us < 20'000; timeout_us += 700) {
    Asked asked;
    const Status status = asked.read(asker_, 2, key_, 0, out.bytes(), timeout_us * 1000);
    if (status) {
      const auto answer = asked.answer();
      if (!answer) {
        ASSERT_EQ(answer.error().code, Code::kTimeout);
      }
    }
    std::memset(out.data(), 0x11, out.size());
    Asked behind;  // its answer comes after all bytes of the first
    AlignedBuffer page(kPageSize);
    ASSERT_TRUE(behind.read(asker_, 2, key_, 0, page.bytes()));
    ASSERT_TRUE(behind.answer());
    for (std::size_t i = 0; i < out.size(); i += 64) ASSERT_EQ(out.data()[i], std::byte{0x11});
  }
  EXPECT_EQ(asker_.peer(2).counts.disconnects, 0u);
}

}  // namespace
}  // namespace kvsyncfs
