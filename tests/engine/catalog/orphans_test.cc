// Orphans of a cluster: held by every session until it has said otherwise.
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

constexpr NodeId kA{1}, kB{2}, kC{3};
using Ids = std::vector<InodeId>;

class Orphans : public CatalogTest {
 protected:
  void join(NodeId node, std::uint64_t incarnation = 1) {
    EXPECT_TRUE(catalog.run(JoinCommand{node, {incarnation}, 0, 5000}).status);
  }
  void end(NodeId node) { EXPECT_TRUE(catalog.run(EndCommand{node, {1}}).status); }
  InodeId orphan(const std::string& name = "f") {
    const InodeId id = catalog.file(name);
    EXPECT_TRUE(catalog.run(catalog.unlink(name)).orphaned);
    return id;
  }
  CommandResult say(NodeId node, Ids held, Ids released, std::uint64_t incarnation = 1) {
    return catalog.run(HoldOrphansCommand{std::move(held), std::move(released)},
                       Origin{node, {incarnation}, ++request_});
  }
  std::optional<Code> reclaim(InodeId id) { return catalog.code(ReclaimCommand{id}); }
  Ids reclaimable() { return catalog->reclaimable_orphans(100).value(); }

 private:
  std::uint64_t request_ = 0;
};

TEST_F(Orphans, OfALoneNodeAreHeldByNobody) {
  const InodeId id = orphan();
  EXPECT_EQ(reclaimable(), Ids{id});
  EXPECT_EQ(reclaim(id), std::nullopt);
}

TEST_F(Orphans, EverySessionHoldsOneUntilItHasSaidThatItDoesNot) {
  join(kA);
  join(kB);
  const InodeId id = orphan();
  EXPECT_EQ(reclaim(id), Code::kBusy);
  EXPECT_TRUE(say(kA, {}, {id}).reclaimable.empty());
  EXPECT_EQ(reclaim(id), Code::kBusy);
  EXPECT_EQ(say(kB, {}, {id}).reclaimable, Ids{id});
  EXPECT_EQ(reclaimable(), Ids{id});
  EXPECT_EQ(reclaim(id), std::nullopt);
  EXPECT_TRUE(catalog->orphans()->empty());
}

TEST_F(Orphans, OneThatIsHeldStaysUntilItIsReleased) {
  join(kA);
  join(kB);
  const InodeId id = orphan();
  say(kA, {id}, {});
  EXPECT_TRUE(say(kB, {}, {id}).reclaimable.empty());
  EXPECT_EQ(reclaim(id), Code::kBusy);
  EXPECT_EQ(say(kA, {}, {id}).reclaimable, Ids{id});
  EXPECT_EQ(reclaim(id), std::nullopt);
}

TEST_F(Orphans, AReleaseIsForGood) {
  join(kA);
  join(kB);
  const InodeId id = orphan();
  say(kA, {}, {id});
  say(kA, {id}, {});
  EXPECT_EQ(say(kB, {}, {id}).reclaimable, Ids{id});
  EXPECT_TRUE(say(kB, {}, {id}).reclaimable.empty());
}

TEST_F(Orphans, TheEndOfASessionReleases) {
  join(kA);
  join(kB);
  const InodeId id = orphan();
  say(kA, {}, {id});
  say(kB, {id}, {});
  EXPECT_TRUE(reclaimable().empty());
  end(kB);
  EXPECT_EQ(reclaimable(), Ids{id});
  EXPECT_EQ(reclaim(id), std::nullopt);
}

TEST_F(Orphans, ALaterSessionOfTheNodeHoldsNothingOfTheFormer) {
  join(kA);
  const InodeId id = orphan();
  say(kA, {id}, {});
  end(kA);
  join(kA, 2);
  EXPECT_EQ(reclaimable(), Ids{id});
}

TEST_F(Orphans, WhoJoinsLaterHoldsNoOrphanOfBefore) {
  join(kA);
  const InodeId id = orphan();
  join(kC);
  EXPECT_EQ(say(kA, {}, {id}).reclaimable, Ids{id});
}

TEST_F(Orphans, ARenameOverTheLastNameMakesOneThatIsHeldToo) {
  join(kA);
  const InodeId id = catalog.file("f");
  catalog.file("g");
  EXPECT_TRUE(catalog.run(catalog.rename(kRootInode, "g", kRootInode, "f")).orphaned);
  EXPECT_EQ(reclaim(id), Code::kBusy);
}

TEST_F(Orphans, ManyInOneCommandAndTheSameOneTwice) {
  join(kA);
  Ids ids;
  for (int i = 0; i < 10; ++i) ids.push_back(orphan(std::to_string(i)));
  ids.push_back(ids[0]);
  ids.push_back({99999});
  ids.push_back(kRootInode);
  EXPECT_EQ(say(kA, {ids[1]}, ids).reclaimable, Ids(ids.begin(), ids.begin() + 10));
  EXPECT_EQ(catalog->reclaimable_orphans(3)->size(), 3u);
}

TEST_F(Orphans, OnlyASessionSaysAnything) {
  join(kA);
  const InodeId id = orphan();
  EXPECT_EQ(catalog.code(HoldOrphansCommand{{}, {id}}), Code::kInvalid);
  EXPECT_EQ(say(kB, {}, {id}).status.error().code, Code::kFenced);
  EXPECT_EQ(reclaim(id), Code::kBusy);
}

TEST_F(Orphans, ReplayGivesTheSameHolders) {
  join(kA);
  join(kB);
  const InodeId first = orphan("1"), second = orphan("2");
  say(kA, {first}, {second});
  catalog.checkpoint();
  say(kB, {second}, {first});
  end(kA);
  const std::uint32_t digest = catalog.digest();
  catalog.reopen();
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
  EXPECT_EQ(reclaimable(), Ids{first});
}

}  // namespace
}  // namespace kvsyncfs
