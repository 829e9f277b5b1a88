// Segments that several nodes hold, and appends whose place the log decides.
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

using CatalogPlacedSegments = CatalogTest;

TEST_F(CatalogPlacedSegments, RecordNamesOwnerAndHoldersAlsoAfterASeal) {
  const SegmentId s = catalog.run(OpenPlacedSegmentCommand{{2}, {{2}, {5}}}).segment;
  catalog.run(SealSegmentCommand{s, 8192});
  const SegmentRecord record = catalog->segment(s).value();
  EXPECT_EQ(record.owner, NodeId{2});
  EXPECT_EQ(record.holders, (std::vector<NodeId>{{2}, {5}}));
  EXPECT_EQ(record.length, 8192u);
  EXPECT_TRUE(catalog.problems().empty());
}

TEST_F(CatalogPlacedSegments, HoldersChange) {
  const SegmentId s = catalog.run(OpenPlacedSegmentCommand{{2}, {{2}, {5}}}).segment;
  catalog.run(SetHoldersCommand{s, {5}, {{5}, {7}}});
  EXPECT_EQ(catalog->segment(s)->owner, NodeId{5});
  EXPECT_EQ(catalog->segment(s)->holders, (std::vector<NodeId>{{5}, {7}}));
  EXPECT_EQ(catalog.code(SetHoldersCommand{{99}, {5}, {{5}}}), Code::kNotFound);
}

TEST_F(CatalogPlacedSegments, BadHoldersAreRefused) {
  const std::vector<NodeId> many(kHoldersMax + 1, NodeId{1});
  for (const auto& holders : {std::vector<NodeId>{}, {{3}}, {{2}, {2}}, {{2}, {0}}, many})
    EXPECT_EQ(catalog.code(OpenPlacedSegmentCommand{{2}, holders}), Code::kInvalid);
}

TEST_F(CatalogPlacedSegments, AppendsComeOneBehindTheOther) {
  const InodeId file = catalog.file("f");
  const SegmentId s = catalog.run(OpenPlacedSegmentCommand{{1}, {{1}}}).segment;
  const SegmentId t = catalog.run(OpenPlacedSegmentCommand{{2}, {{2}}}).segment;
  catalog.run(AppendExtentsCommand{file, {{s, 4096, 10}}, catalog.now()});
  const CommandResult second =
      catalog.run(AppendExtentsCommand{file, {{t, 4096, 5}, {t, 8192, 7}}, catalog.now()});
  EXPECT_EQ(second.attributes.size, 22u);
  EXPECT_EQ(catalog.extents(file),
            (std::vector<Extent>{{0, 10, s, 4096}, {10, 5, t, 4096}, {15, 7, t, 8192}}));
  EXPECT_TRUE(catalog.problems().empty());
}

TEST_F(CatalogPlacedSegments, AppendBeyondTheLargestFileChangesNothing) {
  const InodeId file = catalog.file("f");
  const SegmentId s = catalog.segment();
  catalog.run(catalog.resize(file, kFileSizeMax - 3));
  EXPECT_EQ(catalog.code(AppendExtentsCommand{file, {{s, 4096, 3}, {s, 8192, 1}}, catalog.now()}),
            Code::kFileTooBig);
  EXPECT_EQ(catalog.inode(file).size, kFileSizeMax - 3);
  EXPECT_EQ(catalog.code(AppendExtentsCommand{{12345}, {{s, 4096, 3}}, catalog.now()}),
            Code::kStale);
}

}  // namespace
}  // namespace kvsyncfs
