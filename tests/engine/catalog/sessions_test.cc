// Sessions: who may change the catalog, and that a request is applied once.
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

constexpr NodeId kNode{7};
constexpr std::uint32_t kLeaseMs = 5000;

JoinCommand join(std::uint64_t incarnation, NodeId node = kNode) {
  return {node, {incarnation}, 0x5, kLeaseMs};
}
EndCommand end(std::uint64_t incarnation, NodeId node = kNode) { return {node, {incarnation}}; }
Origin from(std::uint64_t incarnation, std::uint64_t request, NodeId node = kNode) {
  return {node, {incarnation}, request};
}

class Sessions : public CatalogTest {
 protected:
  SessionRecord session(NodeId node = kNode) { return catalog->sessions().at(node); }
  CreateCommand creation(std::string name) {
    return catalog.creation(kRootInode, std::move(name), kRegular | 0644);
  }
};

TEST_F(Sessions, JoinIsKnownByItsPlaceInTheLogAndByWhatItSaid) {
  catalog.file("before");
  const CommandResult joined = catalog.run(join(3));
  ASSERT_TRUE(joined.status);
  EXPECT_EQ(joined.session, SessionId{2 * 1024});
  EXPECT_EQ(session(), (SessionRecord{{2 * 1024}, {3}, 0x5, kLeaseMs, {}, 0}));
  const CommandResult ended = catalog.run(end(3));
  EXPECT_EQ(ended.session, joined.session);
  EXPECT_EQ(session().ended, Position{3});
}

TEST_F(Sessions, ANewIncarnationWaitsForTheEndOfTheFormer) {
  catalog.run(join(3));
  EXPECT_EQ(catalog.code(join(4)), Code::kBusy);
  EXPECT_EQ(catalog.code(end(4)), Code::kBusy);
  EXPECT_EQ(session().incarnation, Incarnation{3});
  catalog.run(end(3));
  EXPECT_EQ(catalog.code(join(4)), std::nullopt);
  EXPECT_EQ(session().incarnation, Incarnation{4});
  EXPECT_TRUE(session().lives());
}

TEST_F(Sessions, OneThatNeverJoinedCannotJoinAfterItsEnd) {
  EXPECT_EQ(catalog.code(end(3)), std::nullopt);
  EXPECT_FALSE(session().lives());
  EXPECT_EQ(catalog.code(join(3)), Code::kFenced);
  EXPECT_EQ(catalog.code(join(4)), std::nullopt);
}

TEST_F(Sessions, ZerosAreNoNodeNoIncarnationAndNoLease) {
  JoinCommand no_lease = join(3);
  no_lease.lease_ms = 0;
  EXPECT_EQ(catalog.code(no_lease), Code::kInvalid);
  EXPECT_EQ(catalog.code(join(0)), Code::kInvalid);
  EXPECT_EQ(catalog.code(end(0)), Code::kInvalid);
  EXPECT_EQ(catalog.code(join(3, {0})), Code::kInvalid);
  EXPECT_EQ(catalog.code(end(3, {0})), Code::kInvalid);
  EXPECT_TRUE(catalog->sessions().empty());
}

TEST_F(Sessions, TheTableHasALimit) {
  for (std::size_t i = 0; i < kSessionsMax; ++i) catalog.run(join(1, {i + 1}));
  EXPECT_EQ(catalog->sessions().size(), kSessionsMax);
  EXPECT_EQ(catalog.code(join(1, {9999})), Code::kTooBig);
  EXPECT_EQ(catalog.code(end(1, {9999})), Code::kTooBig);
  EXPECT_EQ(catalog.code(end(1, {1})), std::nullopt);
  EXPECT_EQ(catalog.code(join(2, {1})), std::nullopt);
}

TEST_F(Sessions, ARequestThatIsSentAgainIsAppliedOnce) {
  catalog.run(join(3));
  EXPECT_EQ(catalog.code(creation("a"), from(3, 1)), std::nullopt);
  EXPECT_EQ(catalog.code(catalog.unlink("a"), from(3, 2)), std::nullopt);
  const std::uint32_t digest = catalog.digest();
  EXPECT_EQ(catalog.code(creation("a"), from(3, 1)), Code::kStale);
  EXPECT_EQ(catalog.code(creation("a"), from(3, 2)), Code::kStale);
  EXPECT_EQ(catalog.digest(), digest);
  EXPECT_TRUE(catalog.names(kRootInode).empty());
}

TEST_F(Sessions, ARequestWhoseCommandsFailedIsHadAsWell) {
  catalog.run(join(3));
  EXPECT_EQ(catalog.code(catalog.unlink("a"), from(3, 5)), Code::kNotFound);
  catalog.file("a");
  EXPECT_EQ(catalog.code(catalog.unlink("a"), from(3, 5)), Code::kStale);
  catalog.apply({}, from(3, 6));
  EXPECT_EQ(session().last_request, 6u);
}

TEST_F(Sessions, NumbersMayHaveGapsAndBelongToOneSession) {
  catalog.run(join(3));
  catalog.run(join(1, {8}));
  EXPECT_EQ(catalog.code(creation("a"), from(3, 10)), std::nullopt);
  EXPECT_EQ(catalog.code(creation("b"), from(1, 1, {8})), std::nullopt);
  catalog.run(end(3));
  catalog.run(join(4));
  EXPECT_EQ(catalog.code(creation("c"), from(4, 1)), std::nullopt);
  EXPECT_EQ(catalog.names(kRootInode), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(Sessions, NothingOfAnEndedOrUnknownIncarnationIsApplied) {
  EXPECT_EQ(catalog.code(creation("a"), from(3, 1)), Code::kFenced);
  catalog.run(join(3));
  EXPECT_EQ(catalog.code(creation("a"), from(2, 1)), Code::kFenced);
  catalog.run(end(3));
  EXPECT_EQ(catalog.code(creation("a"), from(3, 1)), Code::kFenced);
  catalog.run(join(4));
  EXPECT_EQ(catalog.code(creation("a"), from(3, 1)), Code::kFenced);
  EXPECT_TRUE(catalog.names(kRootInode).empty());
}

TEST_F(Sessions, WhatFollowsItsOwnEndInATransactionIsDropped) {
  catalog.run(join(3));
  const auto results = catalog.apply({creation("a"), end(3), creation("b")}, from(3, 1));
  EXPECT_TRUE(results[0].status);
  EXPECT_TRUE(results[1].status);
  EXPECT_EQ(results[2].status.error().code, Code::kFenced);
  EXPECT_EQ(catalog.names(kRootInode), (std::vector<std::string>{"a"}));
}

TEST_F(Sessions, AChangeWaitsForThoseThatJoinedBeforeItAndLive) {
  catalog.run(join(3));  // at 1
  EXPECT_FALSE(must_acknowledge(session(), {0}));
  EXPECT_TRUE(must_acknowledge(session(), {1}));
  EXPECT_TRUE(must_acknowledge(session(), {100}));
  catalog.run(end(3));
  EXPECT_FALSE(must_acknowledge(session(), {1}));
  catalog.run(join(4));  // at 3
  EXPECT_FALSE(must_acknowledge(session(), {2}));
  EXPECT_TRUE(must_acknowledge(session(), {3}));
}

TEST_F(Sessions, ReplayAfterACrashAppliesARequestOnceToo) {
  catalog.run(join(3));
  catalog.apply({creation("a"), creation("b")}, from(3, 1));
  catalog.checkpoint();
  catalog.run(catalog.unlink("a"), from(3, 2));
  catalog.run(catalog.unlink("a"), from(3, 2));
  catalog.run(end(3));
  const std::uint32_t digest = catalog.digest();
  const auto sessions = catalog->sessions();
  catalog.reopen();
  EXPECT_EQ(session().last_request, 1u);
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
  EXPECT_EQ(catalog->sessions(), sessions);
}

/// The catalog on disk may end within a transaction: then the rest of it is no repetition.
TEST_F(Sessions, ATransactionThatACrashCutIsFinished) {
  catalog.run(join(3));
  const InodeId file = catalog.file("a");
  const SegmentId segment = catalog.segment();
  bool begun = false;
  catalog->set_extent_observer(
      [&](const ExtentChange&) { begun = begun || catalog->begin_checkpoint().has_value(); });
  catalog.apply({catalog.write(file, {{0, 10, segment, 0}}), creation("b"), creation("c")},
                from(3, 1));
  ASSERT_TRUE(begun);
  ASSERT_TRUE(catalog->finish_checkpoint());
  const std::uint32_t digest = catalog.digest();
  catalog.reopen();
  EXPECT_EQ(catalog.names(kRootInode), std::vector<std::string>{"a"});
  EXPECT_EQ(catalog.extents(file).size(), 1u);
  EXPECT_EQ(session().last_request, 0u);
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
  EXPECT_EQ(session().last_request, 1u);
}

TEST_F(Sessions, ATransactionOfNoSessionIsAsItWasBeforeThereWereSessions) {
  const Transaction transaction{{creation("a"), catalog.unlink("b")}};
  EXPECT_EQ(encode(transaction)[0], 1);
  catalog.apply(transaction.commands);
  EXPECT_TRUE(catalog->sessions().empty());
}

}  // namespace
}  // namespace kvsyncfs
