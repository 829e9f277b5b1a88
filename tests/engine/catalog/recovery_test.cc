// Checkpoints, replay, read-only catalogs, and what a bad disk does.
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

class CatalogRecovery : public CatalogTest {
 protected:
  void make_files(int from, int to) {
    for (int i = from; i < to; ++i) catalog.file("f" + std::to_string(i));
  }
};

TEST_F(CatalogRecovery, WhatWasNotCheckpointedIsGoneAndComesBackByReplay) {
  make_files(0, 20);
  std::uint32_t digest = catalog.digest();
  catalog.reopen();
  EXPECT_EQ(catalog->applied(), Position{0});
  EXPECT_EQ(catalog->lookup(kRootInode, "f0").error().code, Code::kNotFound);
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
  EXPECT_EQ(catalog->totals().inodes, 21u);
}

TEST_F(CatalogRecovery, CheckpointSurvivesAPowerCut) {
  make_files(0, 10);
  catalog.checkpoint();
  std::uint32_t at_checkpoint = catalog.digest();
  make_files(10, 20);
  std::uint32_t digest = catalog.digest();
  ASSERT_TRUE(catalog.disk().sync_directory("/store"));
  ASSERT_TRUE(catalog.disk().sync_directory(""));
  catalog.disk().crash();
  catalog.reopen();
  EXPECT_EQ(catalog->applied(), Position{10});
  EXPECT_EQ(catalog.digest(), at_checkpoint);
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
}

std::string manifest_of(MemoryDisk& disk) {
  const std::string name = disk.contents("/store/catalog/CURRENT");
  return "/store/catalog/" + name.substr(0, name.find('\n'));
}

TEST_F(CatalogRecovery, CheckpointWhoseRecordWasTornIsTheOneBefore) {
  make_files(0, 10);
  catalog.checkpoint();
  const std::string manifest = manifest_of(catalog.disk());
  const std::size_t whole = catalog.disk().contents(manifest).size();
  make_files(10, 20);
  const std::uint32_t digest = catalog.digest();
  catalog.checkpoint();
  ASSERT_EQ(manifest_of(catalog.disk()), manifest);
  catalog.close();
  std::string torn = catalog.disk().contents(manifest);
  ASSERT_GT(torn.size(), whole);
  torn[whole + 10] ^= 1;  // behind the header of the record
  catalog.disk().set_contents(manifest, torn);
  catalog.reopen();
  EXPECT_EQ(catalog->applied(), Position{10});
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
}

TEST_F(CatalogRecovery, ZerosBehindTheManifestAreNoRecord) {
  make_files(0, 10);
  catalog.checkpoint();
  const std::string manifest = manifest_of(catalog.disk());
  catalog.close();
  catalog.disk().set_contents(manifest, catalog.disk().contents(manifest) + std::string(5000, 0));
  catalog.reopen();
  EXPECT_EQ(catalog->applied(), Position{10});
}

TEST_F(CatalogRecovery, CheckpointWithNothingNewIsDoneAtOnce) {
  make_files(0, 1);
  catalog.checkpoint();
  catalog.checkpoint();
  EXPECT_EQ(catalog->memtable_bytes(), 0u);
}

TEST_F(CatalogRecovery, ChangesDuringACheckpointAreNotPartOfIt) {
  make_files(0, 5);
  ASSERT_TRUE(catalog->begin_checkpoint());
  make_files(5, 8);
  EXPECT_EQ(catalog->finish_checkpoint().value(), Position{5});
  EXPECT_GT(catalog->memtable_bytes(), 0u);
  catalog.reopen();
  EXPECT_EQ(catalog->applied(), Position{5});
  catalog.replay();
  EXPECT_EQ(catalog->applied(), Position{8});
}

TEST_F(CatalogRecovery, FailedAndEmptyEntriesMoveTheCursorToo) {
  make_files(0, 1);
  EXPECT_EQ(catalog.code(catalog.creation(kRootInode, "f0", kRegular)), Code::kExists);
  catalog.apply({});
  catalog.checkpoint();
  catalog.reopen();
  EXPECT_EQ(catalog->applied(), Position{3});
}

TEST_F(CatalogRecovery, AppliedEntriesAreSkippedAndGapsRefused) {
  make_files(0, 2);
  std::uint32_t digest = catalog.digest();
  auto again = catalog->apply({1}, catalog.log()[0]);
  ASSERT_TRUE(again);
  ASSERT_EQ(again->size(), 1u);
  EXPECT_TRUE(again->at(0).status);
  EXPECT_EQ(again->at(0).inode, InodeId{});
  EXPECT_EQ(catalog->apply({4}, catalog.log()[0]).error().code, Code::kCorrupt);
  EXPECT_EQ(catalog.digest(), digest);
}

TEST_F(CatalogRecovery, OneCommandFailsAloneInItsEntry) {
  auto results = catalog.apply({catalog.creation(kRootInode, "a", kRegular),
                                catalog.creation(kRootInode, "a", kRegular),
                                catalog.creation(kRootInode, "b", kRegular)});
  EXPECT_TRUE(results[0].status);
  EXPECT_EQ(results[1].status.error().code, Code::kExists);
  EXPECT_TRUE(results[2].status);
  EXPECT_EQ(results[0].inode.value, id_at({1}, 0));
  EXPECT_EQ(results[2].inode.value, id_at({1}, 2));
}

TEST_F(CatalogRecovery, ReadOnlyAppliesInMemoryAndLeavesTheDiskAlone) {
  make_files(0, 3);
  catalog.checkpoint();
  make_files(3, 6);
  std::uint32_t digest = catalog.digest();
  catalog.reopen(true);
  catalog.disk().set_hook([](DiskRequest& r) {
    const bool reads = r.operation == DiskOperation::kOpen || r.operation == DiskOperation::kRead;
    return reads ? Status{} : Status(Code::kReadOnly);
  });
  catalog.reopen(true);
  catalog.replay();
  EXPECT_EQ(catalog.digest(), digest);
  ASSERT_TRUE(catalog->begin_checkpoint());
  EXPECT_EQ(catalog->finish_checkpoint().value(), Position{3});
  catalog.reopen(true);
  EXPECT_EQ(catalog->applied(), Position{3});
  catalog.disk().set_hook({});
}

TEST_F(CatalogRecovery, FullDiskFailsTheCheckpointAndALaterOneSucceeds) {
  make_files(0, 3);
  catalog.disk().set_hook([](DiskRequest& r) {
    return r.operation == DiskOperation::kWrite ? Status(Code::kNoSpace) : Status{};
  });
  bool failed = !catalog->begin_checkpoint();
  if (!failed) failed = !catalog->finish_checkpoint();
  EXPECT_TRUE(failed);
  EXPECT_TRUE(catalog->lookup(kRootInode, "f1"));
  catalog.disk().set_hook({});
  // RocksDB may still be on its way to stop when the first one asks again.
  bool done = false;
  for (int attempt = 0; attempt < 5 && !done; ++attempt)
    done = catalog->begin_checkpoint() && catalog->finish_checkpoint();
  EXPECT_TRUE(done);
  catalog.reopen();
  EXPECT_EQ(catalog->applied(), Position{3});
}

TEST_F(CatalogRecovery, RocksDbFlushingByItselfLeavesAWholePrefix) {
  auto options = TestCatalog::options();
  options.directory = "/store/small";
  options.memtable_bytes = 1u << 20;  // far below what follows
  ASSERT_TRUE(Catalog::format(catalog.disk(), options, 0, 0, at(1)));
  auto small = Catalog::open(catalog.disk(), options).value();
  std::vector<Transaction> log;
  InodeId last = kRootInode;
  for (int i = 0; i < 30000; ++i) {
    Transaction t;
    t.commands.push_back(catalog.creation(kRootInode, "file" + std::to_string(i), kRegular));
    t.commands.push_back(WriteInlineCommand{last, {{0, "abc"}}, {}, false, at(i)});
    t.commands.push_back(OpenSegmentCommand{});
    log.push_back(std::move(t));
    last = small->apply({log.size()}, log.back())->at(0).inode;
  }
  const std::uint32_t digest = small->digest().value();
  small.reset();
  small = Catalog::open(catalog.disk(), options).value();
  EXPECT_GT(small->applied().value, 0u);
  EXPECT_LT(small->applied().value, log.size());
  CatalogCheckOptions check;
  check.report = [](const std::string& line) { ADD_FAILURE() << line; };
  EXPECT_EQ(small->check(check).value(), 0u);
  for (std::size_t i = 0; i < log.size(); ++i) ASSERT_TRUE(small->apply({i + 1}, log[i]));
  EXPECT_EQ(small->digest().value(), digest);
}

TEST_F(CatalogRecovery, FormatsOnceAndOpensOnlyWhatIsThere) {
  auto options = TestCatalog::options();
  EXPECT_EQ(Catalog::format(catalog.disk(), options, 0, 0, at(1)).error().code, Code::kExists);
  options.directory = "/store/none";
  EXPECT_EQ(Catalog::open(catalog.disk(), options).error().code, Code::kNotFound);
}

TEST_F(CatalogRecovery, ManyCheckpointsKeepEverything) {
  for (int round = 0; round < 12; ++round) {
    make_files(round * 10, round * 10 + 10);
    catalog.run(catalog.unlink("f" + std::to_string(round * 10)));
    catalog.checkpoint();
  }
  std::uint32_t digest = catalog.digest();
  catalog.reopen();
  EXPECT_EQ(catalog.digest(), digest);
  EXPECT_EQ(catalog.names(kRootInode).size(), 12u * 9);
}

}  // namespace
}  // namespace kvsyncfs
