// fsck of what the catalog keeps of a cluster's nodes.
#include "tests/engine/catalog/fsck_fixture.h"

namespace kvsyncfs {
namespace {

class CatalogFsckCluster : public CatalogFsck {
 protected:
  CatalogFsckCluster() {
    catalog.run(JoinCommand{{7}, {1}, 0, 5000});
    catalog.checkpoint();
  }
};

TEST_F(CatalogFsckCluster, DamagedSessionRefusesToOpenButForTheCheck) {
  write([&](auto& batch) { put(batch, session_key({7}), "junk"); });
  EXPECT_EQ(Catalog::open(catalog.disk(), TestCatalog::options()).error().code, Code::kCorrupt);
  reopen_for_check();
  expect(catalog.problems(), "the session of node 7 does not decode");
}

TEST_F(CatalogFsckCluster, DamagedOrphanStaysWhereASessionMayHoldIt) {
  catalog.run(catalog.unlink("f", directory));
  catalog.checkpoint();
  write([&](auto& batch) { put(batch, orphan_key(file), "junk"); });
  reopen_for_check();
  expect(catalog.problems(), "is an orphan whose record does not decode");
  catalog.apply({});
  EXPECT_EQ(catalog->repair({}).value(), 0u);
  EXPECT_EQ(catalog.code(ReclaimCommand{file}), Code::kCorrupt);
}

TEST_F(CatalogFsck, DamagedOrphanOfALoneNodeIsHeldByNobody) {
  catalog.run(catalog.unlink("f", directory));
  catalog.checkpoint();
  write([&](auto& batch) { put(batch, orphan_key(file), "junk"); });
  reopen_for_check();
  catalog.apply({});
  EXPECT_EQ(catalog->repair({}).value(), 1u);
  EXPECT_EQ(catalog.code(ReclaimCommand{file}), std::nullopt);
}

/// A lock of the only session on /d/f, another one that waits for it, and a flock on /good.
class CatalogFsckLocks : public CatalogFsckCluster {
 protected:
  CatalogFsckLocks() {
    for (const std::uint64_t owner : {1, 2})
      wait = catalog
                 .run(AcquireLockCommand{file, LockKind::kPosix, LockType::kExclusive, owner, 0, 9,
                                         1, true},
                      Origin{{7}, {1}, owner})
                 .wait;
    catalog.checkpoint();
    session = catalog->sessions().at({7}).session;
    table = catalog->locks(file, LockKind::kPosix).value();
  }
  void expect_mended(const Damage& damage, std::string_view part) {
    write(damage);
    reopen_for_check();
    expect(catalog.problems(), part);
    catalog.apply({});
    EXPECT_GT(catalog->repair({}).value(), 0u);
    EXPECT_TRUE(catalog.problems().empty()) << ::testing::PrintToString(catalog.problems());
  }

  SessionId session;
  std::uint64_t wait = 0;
  LockTable table;
};

TEST_F(CatalogFsckLocks, TheIndexesFollowTheTables) {
  expect_mended(
      [&](auto& batch) {
        batch.Delete(locked_key(session, file, LockKind::kPosix).view());
        put(batch, wait_key({session, 2}, wait), encode_wait({99}));
      },
      "a lock of session " + std::to_string(session.value) + " is not in the index");
  expect_mended(
      [&](auto& batch) { put(batch, locked_key({5}, file, LockKind::kPosix), encode_locked()); },
      "the index has a lock of session 5 that does not exist");
  catalog.run(EndCommand{{7}, {1}});
  EXPECT_TRUE(catalog->locks(file, LockKind::kPosix)->empty());
}

TEST_F(CatalogFsckLocks, LocksOfNoInodeGo) {
  expect_mended([&](auto& batch) { put(batch, lock_key({9999}, LockKind::kFlock), encode(table)); },
                "inode 9999: has locks and does not exist");
}

TEST_F(CatalogFsckLocks, LocksThatCannotBeAreToldAndLeft) {
  LockTable bad = table;
  bad.held.push_back(bad.held[0]);
  bad.held[1].owner.number = 7;
  bad.waits[0].wanted.start = bad.waits[0].wanted.end = 50;
  bad.held[0].owner.session = {3};
  write([&](auto& batch) { put(batch, lock_key(file, LockKind::kPosix), encode(bad)); });
  reopen_for_check();
  const auto lines = catalog.problems();
  expect(lines, "the lock at 0 conflicts with another one");
  expect(lines, "session 3 has a lock and does not live");
  expect(lines, "wait " + std::to_string(wait) + " waits for nobody");
  write([&](auto& batch) { put(batch, lock_key(file, LockKind::kPosix), "junk"); });
  reopen_for_check();
  EXPECT_EQ(catalog.problems().size(), 1u);
  expect(catalog.problems(), "its locks do not decode");
}

TEST_F(CatalogFsckCluster, ARepairLeavesADamagedSessionForItMayHaveEnded) {
  write([&](auto& batch) { put(batch, session_key({7}), "junk"); });
  reopen_for_check();
  catalog.apply({});
  EXPECT_EQ(catalog->repair({}).value(), 0u);
  EXPECT_EQ(catalog.problems().size(), 1u);
}

}  // namespace
}  // namespace kvsyncfs
