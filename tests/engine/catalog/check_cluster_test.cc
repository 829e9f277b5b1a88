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

TEST_F(CatalogFsckCluster, ARepairLeavesADamagedSessionForItMayHaveEnded) {
  write([&](auto& batch) { put(batch, session_key({7}), "junk"); });
  reopen_for_check();
  catalog.apply({});
  EXPECT_EQ(catalog->repair({}).value(), 0u);
  EXPECT_EQ(catalog.problems().size(), 1u);
}

}  // namespace
}  // namespace kvsyncfs
