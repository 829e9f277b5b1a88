// Where the bytes of files lie: extents and their accounts.
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

class CatalogData : public CatalogTest {
 protected:
  InodeId file = catalog.file("f");
  SegmentId s = catalog.segment();
  std::uint64_t live(SegmentId id) { return catalog->segment(id)->live_bytes; }
};

TEST_F(CatalogData, WrittenExtentSetsSizeTimesAndAccounts) {
  WriteExtentsCommand c = catalog.write(file, {{100, 50, s, 4096}});
  CommandResult result = catalog.run(c);
  EXPECT_EQ(result.attributes.size, 150u);
  EXPECT_EQ(result.attributes.allocated_bytes, 50u);
  EXPECT_EQ(result.attributes.mtime, *c.mtime);
  EXPECT_EQ(result.attributes.ctime, c.time);
  EXPECT_EQ(live(s), 50u);
  EXPECT_EQ(catalog->totals().live_bytes, 50u);
  auto owners = catalog->segment_extents(s, 0, 10).value();
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(owners[0].first, file);
  EXPECT_EQ(owners[0].second, (Extent{100, 50, s, 4096}));
  EXPECT_TRUE(catalog->segment_extents(s, 4097, 10)->empty());
}

TEST_F(CatalogData, FileCreatedFilledHasItsBytesFromTheStart) {
  CreateFilledCommand c{kRootInode, "new", kRegular | 0644, 022, 1, 2, at(7), {}};
  c.extents = {{0, 50, s, 4096}, {50, 10, s, 8192}};
  const CommandResult result = catalog.run(c);
  ASSERT_TRUE(result.status);
  EXPECT_EQ(catalog->lookup(kRootInode, "new")->inode, result.inode);
  EXPECT_EQ(result.attributes.size, 60u);
  EXPECT_EQ(result.attributes.allocated_bytes, 60u);
  EXPECT_EQ(result.attributes.mtime, at(7));
  EXPECT_EQ(result.attributes.mode, kRegular | 0644);
  EXPECT_EQ(catalog.extents(result.inode), c.extents);
  EXPECT_EQ(live(s), 60u);
}

TEST_F(CatalogData, FileThatCannotBeCreatedFilledIsNotThere) {
  const auto code = [&](std::string name, std::uint32_t mode, std::vector<Extent> extents) {
    return catalog.code(
        CreateFilledCommand{kRootInode, std::move(name), mode, 0, 0, 0, at(7), std::move(extents)});
  };
  EXPECT_EQ(code("f", kRegular, {{0, 1, s, 0}}), Code::kExists);
  EXPECT_EQ(code("new", kRegular, {{0, 1, {12345}, 0}}), Code::kStale);
  EXPECT_EQ(code("new", kRegular, {{0, 0, s, 0}}), Code::kInvalid);
  EXPECT_EQ(code("new", kDirectory, {}), Code::kInvalid);
  EXPECT_EQ(code("", kRegular, {}), Code::kInvalid);
  EXPECT_FALSE(catalog->lookup(kRootInode, "new"));
  EXPECT_EQ(live(s), 0u);
}

TEST_F(CatalogData, OverwriteInTheMiddleSplitsTheOldExtent) {
  SegmentId t = catalog.segment();
  catalog.run(catalog.write(file, {{0, 100, s, 4096}}));
  catalog.run(catalog.write(file, {{40, 20, t, 8192}}));
  EXPECT_EQ(catalog.extents(file),
            (std::vector<Extent>{{0, 40, s, 4096}, {40, 20, t, 8192}, {60, 40, s, 4156}}));
  EXPECT_EQ(live(s), 80u);
  EXPECT_EQ(live(t), 20u);
}

TEST_F(CatalogData, ExtentsOfOneCommandSeeEachOther) {
  SegmentId t = catalog.segment();
  catalog.run(catalog.write(file, {{0, 100, s, 0}}));
  catalog.run(catalog.write(file, {{10, 10, t, 0}, {50, 10, t, 10}, {15, 40, t, 4096}}));
  EXPECT_EQ(catalog.extents(file),
            (std::vector<Extent>{
                {0, 10, s, 0}, {10, 5, t, 0}, {15, 40, t, 4096}, {55, 5, t, 15}, {60, 40, s, 60}}));
}

TEST_F(CatalogData, ReadsExtentsThatTouchTheRangeUncut) {
  catalog.run(catalog.write(file, {{0, 10, s, 0}, {10, 10, s, 100}, {30, 10, s, 200}}));
  auto touched = [&](std::uint64_t offset, std::uint64_t length, std::size_t max = 10) {
    std::vector<std::uint64_t> starts;
    for (const Extent& e : catalog->extents(file, offset, length, max).value())
      starts.push_back(e.file_offset);
    return starts;
  };
  using Starts = std::vector<std::uint64_t>;
  EXPECT_EQ(touched(5, 5), (Starts{0}));
  EXPECT_EQ(touched(5, 6), (Starts{0, 10}));
  EXPECT_EQ(touched(20, 10), (Starts{}));
  EXPECT_EQ(touched(15, 16), (Starts{10, 30}));
  EXPECT_EQ(touched(0, UINT64_MAX), (Starts{0, 10, 30}));
  EXPECT_EQ(touched(0, 100, 2), (Starts{0, 10}));
  EXPECT_EQ(touched(40, 100), (Starts{}));
}

TEST_F(CatalogData, StaleWritesReferenceNothing) {
  EXPECT_EQ(catalog.code(catalog.write({99}, {{0, 1, s, 0}})), Code::kStale);
  EXPECT_EQ(catalog.code(catalog.write(file, {{0, 1, {12345}, 0}})), Code::kStale);
  EXPECT_EQ(catalog.code(catalog.write(file, {{0, 1, kNoSegment, 0}})), Code::kStale);
  EXPECT_EQ(catalog.code(catalog.write(file, {{0, 0, s, 0}})), Code::kInvalid);
  EXPECT_EQ(catalog.code(catalog.write(file, {{kFileSizeMax, 1, s, 0}})), Code::kInvalid);
  EXPECT_EQ(catalog.code(catalog.write(file, {{UINT64_MAX, 2, s, 0}})), Code::kInvalid);
  EXPECT_EQ(catalog.code(catalog.write(kRootInode, {{0, 1, s, 0}})), Code::kInvalid);
  EXPECT_EQ(live(s), 0u);
}

TEST_F(CatalogData, CutTrimsAndForgetsTheRestForGood) {
  catalog.run(catalog.write(file, {{0, 100, s, 0}, {200, 100, s, 4096}}));
  EXPECT_EQ(catalog.run(catalog.resize(file, 50)).attributes.allocated_bytes, 50u);
  EXPECT_EQ(catalog.run(catalog.resize(file, 1000)).attributes.size, 1000u);
  EXPECT_EQ(catalog.extents(file), (std::vector<Extent>{{0, 50, s, 0}}));
  EXPECT_EQ(live(s), 50u);
  EXPECT_EQ(catalog.code(catalog.resize(file, kFileSizeMax + 1)), Code::kFileTooBig);
  EXPECT_EQ(catalog.code(catalog.resize(kRootInode, 0)), Code::kIsDirectory);
}

TEST_F(CatalogData, InlineBytesChangeSizeAndTimesOnly) {
  WriteInlineCommand c;
  c.inode = file;
  c.pieces = {{10, "abc"}, {0, "x"}};
  c.mtime = at(4242);
  c.time = at(4242);
  Inode after = catalog.run(c).attributes;
  EXPECT_EQ(after.size, 13u);
  EXPECT_EQ(after.mtime, at(4242));
  EXPECT_TRUE(catalog.extents(file).empty());
  c.inode = {99};
  EXPECT_EQ(catalog.code(c), Code::kStale);
}

TEST_F(CatalogData, AllocateReservesHolesAndPunchesThem) {
  catalog.run(catalog.write(file, {{100, 100, s, 0}}));
  AllocateCommand c{file, 0, 300, AllocateMode::kReserveKeepSize, at(9000)};
  Inode after = catalog.run(c).attributes;
  EXPECT_EQ(after.size, 200u);
  EXPECT_EQ(after.allocated_bytes, 300u);
  EXPECT_EQ(catalog->totals().reserved_bytes, 200u);
  EXPECT_EQ(
      catalog.extents(file),
      (std::vector<Extent>{{0, 100, kNoSegment, 0}, {100, 100, s, 0}, {200, 100, kNoSegment, 0}}));
  c.mode = AllocateMode::kReserve;
  EXPECT_EQ(catalog.run(c).attributes.size, 300u);
  catalog.run(AllocateCommand{file, 50, 100, AllocateMode::kPunchHole, at(9000)});
  EXPECT_EQ(
      catalog.extents(file),
      (std::vector<Extent>{{0, 50, kNoSegment, 0}, {150, 50, s, 50}, {200, 100, kNoSegment, 0}}));
  catalog.run(AllocateCommand{file, 160, 10, AllocateMode::kZeroRange, at(9000)});
  EXPECT_EQ(live(s), 40u);
  EXPECT_EQ(catalog->totals().reserved_bytes, 160u);
  EXPECT_EQ(catalog.code(AllocateCommand{file, 0, 0, AllocateMode::kReserve, at(1)}),
            Code::kInvalid);
  EXPECT_EQ(catalog.code(AllocateCommand{file, kFileSizeMax, 2, AllocateMode::kReserve, at(1)}),
            Code::kFileTooBig);
}

TEST_F(CatalogData, CloneSharesBytesAndCountsThemTwice) {
  InodeId copy = catalog.file("copy");
  catalog.run(catalog.write(file, {{0, 100, s, 0}, {150, 50, s, 4096}}));
  catalog.run(catalog.write(copy, {{0, 300, s, 8192}}));
  CloneRangeCommand c{file, copy, 50, 10, 150, at(9000)};
  EXPECT_EQ(catalog.code(c), std::nullopt);
  EXPECT_EQ(catalog.extents(copy),
            (std::vector<Extent>{
                {0, 10, s, 8192}, {10, 50, s, 50}, {110, 50, s, 4096}, {160, 140, s, 8352}}));
  EXPECT_EQ(live(s), 150u + 250u);
  c.length = 151;
  EXPECT_EQ(catalog.code(c), Code::kInvalid);
  EXPECT_EQ(catalog.code(CloneRangeCommand{file, file, 0, 10, 100, at(1)}), Code::kInvalid);
  EXPECT_EQ(catalog.code(CloneRangeCommand{file, file, 0, 200, 100, at(1)}), std::nullopt);
}

TEST_F(CatalogData, MoveRepointsOnlyWhatIsStillThere) {
  SegmentId t = catalog.segment();
  catalog.run(catalog.write(file, {{0, 100, s, 0}}));
  catalog.run(catalog.write(file, {{40, 20, s, 4096}}));
  std::vector<ExtentChange> seen;
  catalog->set_extent_observer([&](const ExtentChange& change) { seen.push_back(change); });
  MoveExtentsCommand c;
  c.moves.push_back({file, {0, 100, s, 0}, t, 1000});
  c.moves.push_back({{99}, {0, 100, s, 0}, t, 1000});
  CommandResult result = catalog.run(c);
  EXPECT_EQ(result.moved_bytes, 80u);
  EXPECT_EQ(catalog.extents(file),
            (std::vector<Extent>{{0, 40, t, 1000}, {40, 20, s, 4096}, {60, 40, t, 1060}}));
  EXPECT_EQ(live(s), 20u);
  EXPECT_EQ(live(t), 80u);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].offset, 60u);
  c.moves[0].to_segment = {4};
  EXPECT_EQ(catalog.code(c), Code::kStale);
}

TEST_F(CatalogData, ObserverHearsOfEveryChangedRange) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  catalog->set_extent_observer(
      [&](const ExtentChange& c) { seen.emplace_back(c.offset, c.length); });
  catalog.run(catalog.write(file, {{0, 100, s, 0}, {200, 5, s, 4096}}));
  catalog.run(catalog.resize(file, 50));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], (std::pair<std::uint64_t, std::uint64_t>{0, 100}));
  EXPECT_EQ(seen[1], (std::pair<std::uint64_t, std::uint64_t>{200, 5}));
  EXPECT_EQ(seen[2].first, 50u);
}

TEST_F(CatalogData, SegmentIsDeletedSealedAndEmptyOnly) {
  catalog.run(catalog.write(file, {{0, 100, s, 0}}));
  EXPECT_EQ(catalog.code(DeleteSegmentCommand{s}), Code::kBusy);
  EXPECT_EQ(catalog.code(SealSegmentCommand{s, 8192}), std::nullopt);
  EXPECT_EQ(catalog->segment(s)->state, SegmentState::kSealed);
  EXPECT_EQ(catalog->segment(s)->length, 8192u);
  EXPECT_EQ(catalog.code(SealSegmentCommand{s, 4096}), Code::kInvalid);
  EXPECT_EQ(catalog.code(DeleteSegmentCommand{s}), Code::kBusy);
  catalog.run(catalog.resize(file, 0));
  EXPECT_EQ(catalog.code(DeleteSegmentCommand{s}), std::nullopt);
  EXPECT_EQ(catalog->segment(s).error().code, Code::kNotFound);
  EXPECT_EQ(catalog.code(DeleteSegmentCommand{s}), Code::kNotFound);
  EXPECT_TRUE(catalog->segments()->empty());
}

TEST_F(CatalogData, ReclaimOfALongFileGoesInBoundedSteps) {
  for (std::uint64_t batch = 0; batch < 5; ++batch) {
    std::vector<Extent> extents;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      std::uint64_t n = batch * 1000 + i;
      extents.push_back({n * 10, 5, s, n * 7});
    }
    catalog.run(catalog.write(file, extents));
  }
  catalog.run(catalog.unlink("f"));
  EXPECT_TRUE(catalog.run(ReclaimCommand{file}).more);
  EXPECT_EQ(live(s), (5000u - kReclaimExtentsMax) * 5);
  EXPECT_EQ(catalog.problems(), std::vector<std::string>{});
  EXPECT_FALSE(catalog.run(ReclaimCommand{file}).more);
  EXPECT_EQ(live(s), 0u);
}

TEST_F(CatalogData, WriteTakesPrivilegesOfARegularFile) {
  SetAttrCommand mode;
  mode.inode = file;
  mode.mode = 06755;
  catalog.run(mode);
  catalog.run(catalog.set_xattr(file, "security.capability", "cap"));
  WriteExtentsCommand c = catalog.write(file, {{0, 1, s, 0}});
  EXPECT_EQ(catalog.run(c).attributes.mode, kRegular | 06755);
  c.kill_privileges = true;
  EXPECT_EQ(catalog.run(c).attributes.mode, kRegular | 0755);
  EXPECT_EQ(catalog->xattr(file, "security.capability").error().code, Code::kNoData);
  mode.mode = 06644;  // set-group-ID without group-execute is mandatory locking, not a privilege
  catalog.run(mode);
  EXPECT_EQ(catalog.run(c).attributes.mode, kRegular | 02644);
}

TEST_F(CatalogData, ChownTakesPrivilegesOfAllButDirectories) {
  const auto chown = [&](InodeId inode, bool kill_setgid) {
    SetAttrCommand c;
    c.inode = inode;
    c.mode = 06644;
    catalog.run(c);
    c.mode.reset();
    c.gid = 5;
    c.kill_privileges = true;
    c.kill_setgid = kill_setgid;
    return catalog.run(c).attributes.mode & 07777;
  };
  const InodeId fifo = catalog.create(kRootInode, "fifo", 0010644);
  for (const InodeId inode : {file, fifo}) {
    EXPECT_EQ(chown(inode, false), 02644u);  // a member of the group leaves what it cannot execute
    EXPECT_EQ(chown(inode, true), 0644u);
  }
  EXPECT_EQ(chown(catalog.directory("d"), true), 06644u);
}

TEST_F(CatalogData, GatheredAccessTimeLeavesTheChangeTime) {
  Inode before = catalog.inode(file);
  SetAttrCommand c;
  c.inode = file;
  c.atime = at(8000);
  c.keep_ctime = true;
  c.time = at(8000);
  Inode after = catalog.run(c).attributes;
  EXPECT_EQ(after.atime, at(8000));
  EXPECT_EQ(after.ctime, before.ctime);
  EXPECT_EQ(after.change, before.change);
}

}  // namespace
}  // namespace kvsyncfs
