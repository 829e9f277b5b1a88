// A catalog made of the pieces of another one's snapshot.
#include "engine/catalog/snapshot.h"

#include "engine/format/codec.h"
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

class CatalogSnapshotTest : public CatalogTest {
 protected:
  static CatalogOptions copy_options() {
    CatalogOptions options = TestCatalog::options();
    options.directory = "/store/copy";
    return options;
  }
  /// Sessions, an orphan that is held, locks held and waited for, attributes, extents.
  void fill() {
    catalog.run(JoinCommand{{7}, {1}, 0, 5000});
    catalog.run(JoinCommand{{8}, {1}, 0, 5000});
    const SegmentId segment = catalog.segment();
    for (int i = 0; i < 200; ++i) {
      const InodeId file = catalog.file("f" + std::to_string(i));
      const auto at = static_cast<std::uint64_t>(i) * kPageSize;
      catalog.run(catalog.write(file, {{0, 100, segment, at}}));
      catalog.run(catalog.set_xattr(file, "user.x", std::string(500, 'x')));
    }
    orphan_ = catalog.file("orphan");
    catalog.run(catalog.unlink("orphan"));
    locked_ = catalog.file("locked");
    const AcquireLockCommand all{
        locked_, LockKind::kPosix, LockType::kExclusive, 1, 0, kLockEndMax, 1, true};
    catalog.run(all, Origin{{7}, {1}, 1});
    catalog.run(all, Origin{{8}, {1}, 1});
  }
  /// Carries the snapshot over, as pieces of that size.
  std::unique_ptr<Catalog> copy(const CatalogSnapshot& snapshot, std::size_t piece_size) {
    auto builder = CatalogBuilder::make(catalog.disk(), copy_options());
    EXPECT_TRUE(builder) << describe(builder.error());
    for (;;) {
      const auto piece = snapshot.records_after((*builder)->last_key(), piece_size);
      EXPECT_TRUE(piece);
      if (!piece || piece->empty()) break;
      const Status added = (*builder)->add(*piece);
      EXPECT_TRUE(added) << describe(added.error());
    }
    const auto position = (*builder)->finish();
    EXPECT_TRUE(position) << describe(position.error());
    EXPECT_EQ(*position, snapshot.position());
    auto opened = Catalog::open(catalog.disk(), copy_options());
    EXPECT_TRUE(opened) << describe(opened.error());
    return std::move(*opened);
  }

  InodeId orphan_, locked_;
};

TEST_F(CatalogSnapshotTest, TheCopyIsTheCatalogOfThatMomentWithWhatWaitedInMemory) {
  fill();
  const auto snapshot = catalog->snapshot();
  ASSERT_TRUE(snapshot) << describe(snapshot.error());
  const std::uint32_t then = catalog.digest();
  catalog.run(catalog.unlink("f7"));
  catalog.file("later");
  const auto made = copy(**snapshot, 1 << 20);
  EXPECT_EQ(made->digest().value(), then);
  EXPECT_NE(catalog.digest(), then);
  EXPECT_EQ(made->applied().value, catalog->applied().value - 2);
  EXPECT_EQ(made->sessions().size(), 2u);
  EXPECT_EQ(made->orphan(orphan_)->value().holders.size(), 2u);
  EXPECT_EQ(made->locks(locked_, LockKind::kPosix)->waits.size(), 1u);
  EXPECT_EQ(made->totals().live_bytes, 200u * 100);
}

TEST_F(CatalogSnapshotTest, TheCopyFollowsTheLogFromThereToTheSameCatalog) {
  fill();
  const auto snapshot = catalog->snapshot();
  ASSERT_TRUE(snapshot);
  for (int i = 0; i < 50; ++i) catalog.run(catalog.unlink("f" + std::to_string(i)));
  const auto made = copy(**snapshot, 1 << 20);
  for (std::size_t i = 0; i < catalog.log().size(); ++i)
    ASSERT_TRUE(made->apply({i + 1}, catalog.log()[i]));
  EXPECT_EQ(made->applied(), catalog->applied());
  EXPECT_EQ(made->digest().value(), catalog.digest());
}

TEST_F(CatalogSnapshotTest, PiecesAreBoundedAndMakeTheSameWhateverTheirSize) {
  fill();
  const auto snapshot = catalog->snapshot();
  ASSERT_TRUE(snapshot);
  constexpr std::size_t kSize = 2000;
  std::string key;
  std::size_t pieces = 0;
  for (;;) {
    const auto piece = (*snapshot)->records_after(key, kSize);
    ASSERT_TRUE(piece);
    if (piece->empty()) break;
    EXPECT_LE(piece->size(), kSize);
    ++pieces;
    for (Reader in(*piece); in.left() > 0;) {
      const std::uint32_t key_size = in.u32(), value_size = in.u32();
      key = in.raw(key_size);
      (void)in.raw(value_size);
    }
  }
  EXPECT_GT(pieces, 50u);
  EXPECT_FALSE((*snapshot)->records_after("", 1)->empty()) << "one record, however large";
  EXPECT_EQ(copy(**snapshot, kSize)->digest().value(), catalog.digest());
}

TEST_F(CatalogSnapshotTest, WhatIsTornOutOfOrderOrNoWholeCatalogIsRefused) {
  fill();
  const auto snapshot = catalog->snapshot();
  ASSERT_TRUE(snapshot);
  const std::string piece = (*snapshot)->records_after("", 2000).value();
  const auto builder = CatalogBuilder::make(catalog.disk(), copy_options());
  ASSERT_TRUE(builder);
  for (const std::string& bad :
       {piece.substr(0, piece.size() - 1), piece.substr(0, 5), piece + piece})
    EXPECT_EQ((*builder)->add(bad).error().code, Code::kCorrupt);
  ASSERT_TRUE(remove_catalog(catalog.disk(), "/store/copy2"));
  CatalogOptions options = copy_options();
  options.directory = "/store/copy2";
  const auto second = CatalogBuilder::make(catalog.disk(), options);
  ASSERT_TRUE(second);
  ASSERT_TRUE((*second)->add(piece));
  EXPECT_EQ((*second)->add(piece).error().code, Code::kCorrupt) << "it was there before";
  EXPECT_EQ((*second)->finish().error().code, Code::kCorrupt) << "no cursor is in it";
}

TEST_F(CatalogSnapshotTest, ACatalogGoesOnWithAnotherFolder) {
  fill();
  const auto snapshot = catalog->snapshot();
  ASSERT_TRUE(snapshot);
  const Position position = (*snapshot)->position();
  (void)copy(**snapshot, 1 << 20);
  const std::uint32_t digest = catalog.digest();
  const auto fresh = Catalog::open(catalog.disk(), copy_options());
  ASSERT_TRUE(fresh);
  CatalogOptions empty = copy_options();
  empty.directory = "/store/empty";
  ASSERT_TRUE(Catalog::format(catalog.disk(), empty, 0, 0, at(1)));
  const auto other = Catalog::open(catalog.disk(), empty);
  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->reopen("/store/nowhere").error().code, Code::kNotFound);
  EXPECT_EQ((*other)->applied(), Position{0}) << "it goes on as before";
  ASSERT_TRUE((*other)->reopen("/store/copy"));
  EXPECT_EQ((*other)->applied(), position);
  EXPECT_EQ((*other)->digest().value(), digest);
  EXPECT_TRUE((*other)->apply({position.value + 1}, {{catalog.unlink("f1")}, {}}));
}

}  // namespace
}  // namespace kvsyncfs
