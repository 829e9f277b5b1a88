// Locks across nodes: ranges, conversions, queues, deadlocks, and the end of a session.
#include "tests/engine/catalog/lock_fixture.h"

namespace kvsyncfs {
namespace {

using Locks = LockTest;
constexpr LockKind kFlock = LockKind::kFlock;
using Waits = std::vector<std::uint64_t>;

TEST_F(Locks, RangesOfAnOwnerSplitMergeAndChangeTheirType) {
  acquire(2, f, kExclusive, 0, 9, false);
  acquire(2, f, kExclusive, 10, 19, false);
  EXPECT_EQ(held(f), "2:x0-19");
  release(2, f, 5, 9);
  EXPECT_EQ(held(f), "2:x0-4 2:x10-19");
  acquire(2, f, kShared, 3, 12, false);
  EXPECT_EQ(held(f), "2:x0-2 2:s3-12 2:x13-19");
  acquire(2, f, kShared, 0, kLockEndMax, false);
  EXPECT_EQ(held(f), "2:s0-");
  release(2, f);
  EXPECT_TRUE(table(f).empty());
}

TEST_F(Locks, OwnersConflictWhereOneIsExclusiveAndTheyShareAByte) {
  EXPECT_EQ(code(acquire(2, f, kShared, 0, 9, false)), std::nullopt);
  EXPECT_EQ(code(acquire(3, f, kShared, 5, 14, false)), std::nullopt);
  EXPECT_EQ(code(acquire(3, f, kExclusive, 9, 9, false)), Code::kWouldBlock);
  EXPECT_EQ(code(acquire(3, f, kExclusive, 10, 14, false)), std::nullopt);
  EXPECT_EQ(code(acquire(4, f, kShared, 14, 14, false)), Code::kWouldBlock);
  EXPECT_EQ(code(acquire(4, g, kExclusive, 14, 14, false)), std::nullopt);
  EXPECT_EQ(held(f), "2:s0-9 3:s5-9 3:x10-14");
}

TEST_F(Locks, TheSameNumberOnAnotherNodeIsAnotherOwner) {
  const AcquireLockCommand all{f, LockKind::kPosix, kExclusive, 2, 0, kLockEndMax, 1, false};
  EXPECT_EQ(code(catalog.run(all, origin(2))), std::nullopt);
  EXPECT_EQ(code(catalog.run(all, origin(3))), Code::kWouldBlock);
}

TEST_F(Locks, FlocksAndRangesDoNotSeeEachOther) {
  EXPECT_EQ(code(acquire(2, f, kExclusive, 0, kLockEndMax, false)), std::nullopt);
  EXPECT_EQ(code(acquire(3, f, kExclusive, 0, kLockEndMax, false, kFlock)), std::nullopt);
}

TEST_F(Locks, GetlkTellsTheConflictThatBeginsFirst) {
  acquire(2, f, kShared, 20, 29, false);
  acquire(3, f, kExclusive, 10, 14, false);
  const LockTable all = table(f);
  const FileLock* first = first_conflict(all, {owner(4), kExclusive, 0, 99, 0});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(*first, (FileLock{owner(3), kExclusive, 10, 14, 1}));
  EXPECT_EQ(first_conflict(all, {owner(4), kShared, 20, 99, 0}), nullptr);
  EXPECT_EQ(first_conflict(all, {owner(3), kExclusive, 0, 19, 0}), nullptr);
}

TEST_F(Locks, WhoWaitsGetsItInTheOrderOfComing) {
  acquire(2, f, kExclusive, 0, 9, false);
  const std::uint64_t first = acquire(3, f, kExclusive, 0, 4, true).wait;
  const std::uint64_t second = acquire(4, f, kShared, 4, 9, true).wait;
  const std::uint64_t third = acquire(5, f, kShared, 4, 4, true).wait;
  EXPECT_TRUE(first < second && second < third);
  const CommandResult result = release(2, f);
  EXPECT_EQ(result.granted, (std::vector<GrantedLock>{{f, LockKind::kPosix, first, owner(3)}}));
  EXPECT_EQ(granted(release(3, f)), (Waits{second, third}));
  EXPECT_EQ(held(f), "4:s4-9 5:s4-4");
}

TEST_F(Locks, AWaitIsPassedByWhatDoesNotConflictWithWhatIsHeld) {
  acquire(2, f, kShared, 0, 9, false);
  acquire(3, f, kExclusive, 0, 9, true);
  EXPECT_EQ(code(acquire(4, f, kShared, 0, 9, false)), std::nullopt);
}

TEST_F(Locks, ADowngradeGrants) {
  acquire(2, f, kExclusive, 0, 9, false);
  const std::uint64_t wait = acquire(3, f, kShared, 0, 9, true).wait;
  EXPECT_EQ(granted(acquire(2, f, kShared, 5, 9, false)), Waits{});
  EXPECT_EQ(granted(acquire(2, f, kShared, 0, 4, false)), Waits{wait});
}

TEST_F(Locks, AGrantThatMakesLessOfALockGrantsThoseThatCameEarlier) {
  acquire(2, f, kExclusive, 0, 9, false);
  acquire(3, f, kExclusive, 10, 19, false);
  const std::uint64_t early = acquire(4, f, kShared, 0, 9, true).wait;
  const std::uint64_t late = acquire(2, f, kShared, 0, 19, true).wait;
  EXPECT_EQ(granted(release(3, f)), (Waits{late, early}));
  EXPECT_EQ(held(f), "2:s0-19 4:s0-9");
}

TEST_F(Locks, AnUpgradeThatIsRefusedOrWaitsKeepsTheRange) {
  acquire(2, f, kShared, 0, 9, false);
  acquire(3, f, kShared, 0, 9, false);
  EXPECT_EQ(code(acquire(2, f, kExclusive, 0, 9, false)), Code::kWouldBlock);
  const std::uint64_t wait = acquire(2, f, kExclusive, 0, 9, true).wait;
  EXPECT_EQ(held(f), "2:s0-9 3:s0-9");
  EXPECT_EQ(code(acquire(3, f, kExclusive, 0, 9, true)), Code::kDeadlock);
  EXPECT_EQ(granted(release(3, f)), Waits{wait});
  EXPECT_EQ(held(f), "2:x0-9");
}

TEST_F(Locks, AFlockThatWaitsLetsItsFormerLockGo) {
  acquire(2, f, kShared, 0, kLockEndMax, false, kFlock);
  acquire(3, f, kShared, 0, kLockEndMax, false, kFlock);
  EXPECT_EQ(code(acquire(2, f, kExclusive, 0, kLockEndMax, false, kFlock)), Code::kWouldBlock);
  EXPECT_EQ(held(f, kFlock), "2:s0- 3:s0-");
  const std::uint64_t wait = acquire(2, f, kExclusive, 0, kLockEndMax, true, kFlock).wait;
  EXPECT_EQ(held(f, kFlock), "3:s0-");
  EXPECT_EQ(code(acquire(3, f, kExclusive, 0, kLockEndMax, false, kFlock)), std::nullopt);
  EXPECT_EQ(granted(release(3, f, 0, kLockEndMax, kFlock)), Waits{wait});
}

TEST_F(Locks, ASignalEndsAWaitAndNothingElse) {
  acquire(2, f, kExclusive, 0, 9, false);
  const std::uint64_t wait = acquire(3, f, kShared, 0, 9, true).wait;
  EXPECT_EQ(code(cancel(2, f, wait)), Code::kNotFound);  // of another session
  EXPECT_EQ(code(cancel(3, g, wait)), Code::kNotFound);
  EXPECT_EQ(code(cancel(3, f, wait)), std::nullopt);
  EXPECT_EQ(code(cancel(3, f, wait)), Code::kNotFound);
  EXPECT_EQ(granted(release(2, f)), Waits{});
}

TEST_F(Locks, ACycleOverFilesAndSessionsIsADeadlock) {
  acquire(2, f, kExclusive, 0, 0, false);
  acquire(3, f, kExclusive, 1, 1, false);
  acquire(4, g, kExclusive, 0, 0, false);
  EXPECT_NE(acquire(2, f, kExclusive, 1, 1, true).wait, 0u);
  EXPECT_NE(acquire(3, g, kShared, 0, 0, true).wait, 0u);
  EXPECT_EQ(code(acquire(4, f, kShared, 0, 0, true)), Code::kDeadlock);
  EXPECT_EQ(code(acquire(4, f, kShared, 0, 0, false)), Code::kWouldBlock);
  EXPECT_NE(acquire(5, f, kShared, 0, 0, true).wait, 0u);
  release(4, g);
  release(3, f);
}

TEST_F(Locks, TheSearchForACycleEnds) {
  const std::uint64_t count = kDeadlockOwnersMax + 10;
  for (std::uint64_t i = 0; i < count; ++i) acquire(i, f, kExclusive, i, i, false);
  for (std::uint64_t i = 0; i + 1 < count; ++i) acquire(i, f, kExclusive, i + 1, i + 1, true);
  const CommandResult closing = acquire(count - 1, f, kExclusive, 0, 0, true);
  EXPECT_NE(closing.wait, 0u);
  EXPECT_EQ(code(cancel(count - 1, f, closing.wait)), std::nullopt);
  EXPECT_EQ(code(acquire(count - 1, f, kExclusive, 20, 20, true)), Code::kDeadlock);
}

TEST_F(Locks, TheEndOfASessionDropsItsLocksAndWaitsAndGrants) {
  acquire(2, f, kExclusive, 0, 9, false);
  acquire(4, g, kExclusive, 0, kLockEndMax, false, kFlock);
  acquire(2, g, kShared, 5, 5, false);
  const std::uint64_t on_f = acquire(3, f, kExclusive, 0, 9, true).wait;
  acquire(4, f, kExclusive, 0, 9, true);
  const std::uint64_t on_g = acquire(3, g, kShared, 0, kLockEndMax, true, kFlock).wait;
  EXPECT_EQ(granted(end(kA)), (Waits{on_f, on_g}));
  EXPECT_EQ(held(f), "3:x0-9");
  EXPECT_TRUE(table(f).waits.empty());
  EXPECT_TRUE(table(g).empty());
  EXPECT_EQ(code(acquire(2, f, kShared, 50, 50, false)), Code::kFenced);
  join(kA);
  EXPECT_EQ(code(acquire(2, f, kShared, 50, 50, false)), std::nullopt);
}

TEST_F(Locks, AFileHasRoomForSoManyLocks) {
  for (std::uint64_t i = 0; i < kLocksPerFileMax - 1; ++i)
    ASSERT_EQ(code(acquire(2, f, kShared, 10 * i, 10 * i + 4, false)), std::nullopt);
  EXPECT_EQ(code(acquire(3, f, kExclusive, 2, 2, true)), std::nullopt);
  EXPECT_EQ(code(acquire(3, f, kExclusive, 2, 2, true)), Code::kNoLocks);
  EXPECT_EQ(code(release(2, f, 1, 2)), Code::kNoLocks);
  EXPECT_EQ(code(acquire(3, f, kExclusive, 7, 7, false)), Code::kNoLocks);
  EXPECT_EQ(code(release(2, f)), std::nullopt);
}

TEST_F(Locks, OnlyASessionLocksAndOnlyWhatThereIs) {
  const AcquireLockCommand all{f, LockKind::kPosix, kExclusive, 2, 0, kLockEndMax, 1, false};
  EXPECT_EQ(catalog.code(all), Code::kInvalid);
  EXPECT_EQ(catalog.code(ReleaseLockCommand{f}), Code::kInvalid);
  EXPECT_EQ(catalog.code(CancelLockCommand{f}), Code::kInvalid);
  EXPECT_EQ(code(acquire(2, {9999}, kShared, 0, 1, false)), Code::kNotFound);
  EXPECT_EQ(code(acquire(2, f, kShared, 2, 1, false)), Code::kInvalid);
  EXPECT_EQ(code(acquire(2, f, kShared, 0, kLockEndMax + 1, false)), Code::kInvalid);
  EXPECT_EQ(code(acquire(2, f, kShared, 0, 1, false, kFlock)), Code::kInvalid);
  EXPECT_EQ(code(release(2, f, 2, 1)), Code::kInvalid);
  EXPECT_EQ(code(release(2, f)), std::nullopt);
}

TEST_F(Locks, AnOrphanThatIsLockedIsNotReclaimed) {
  acquire(2, f, kShared, 0, 1, false);
  catalog.run(catalog.unlink("f"));
  for (const std::uint64_t owner : {2, 3}) catalog.run(HoldOrphansCommand{{}, {f}}, origin(owner));
  EXPECT_EQ(catalog.code(ReclaimCommand{f}), Code::kBusy);
  release(2, f);
  EXPECT_EQ(catalog.code(ReclaimCommand{f}), std::nullopt);
}

TEST_F(Locks, ReplayGivesTheSameTables) {
  acquire(2, f, kExclusive, 0, 9, false);
  acquire(3, f, kExclusive, 0, 9, true);
  catalog.checkpoint();
  acquire(4, f, kShared, 5, 5, true);
  release(2, f);
  const std::uint32_t digest = catalog.digest();
  catalog.reopen();
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
}

}  // namespace
}  // namespace kvsyncfs
