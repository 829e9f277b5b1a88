// Holds keep segments whose bytes nothing refers to any more: for a catalog that was saved.
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

class CatalogHolds : public CatalogTest {
 protected:
  HoldSegmentsCommand hold(std::string name) {
    return {std::move(name), catalog.now(), at(1'000'000)};
  }
  /// A sealed segment without live bytes.
  SegmentId dead_segment() {
    const SegmentId segment = catalog.run(OpenPlacedSegmentCommand{{1}, {{1}, {2}}}).segment;
    catalog.run(SealSegmentCommand{segment, 8192});
    return segment;
  }
  std::optional<Code> removal(SegmentId segment) {
    return catalog.code(DeleteSegmentCommand{segment});
  }
};

TEST_F(CatalogHolds, KeepWhatWasThereAndNothingLater) {
  const SegmentId before = dead_segment();
  const SegmentId open = catalog.run(OpenPlacedSegmentCommand{{1}, {{1}}}).segment;
  catalog.run(hold("monday"));
  const SegmentId later = dead_segment();
  catalog.run(SealSegmentCommand{open, 4096});
  EXPECT_EQ(removal(before), Code::kBusy);
  EXPECT_EQ(removal(open), Code::kBusy) << "also one that was open at that moment";
  EXPECT_EQ(removal(later), std::nullopt);
  EXPECT_TRUE(catalog.problems().empty());
}

TEST_F(CatalogHolds, LetGoOnlyTheHoldThatIsMeant) {
  const SegmentId segment = dead_segment();
  catalog.run(hold("a"));
  const Position first = catalog->holds().at("a").position;
  catalog.run(hold("b"));
  EXPECT_EQ(catalog.code(ReleaseHoldCommand{"a", {first.value + 1}}), Code::kNotFound);
  EXPECT_EQ(catalog.code(ReleaseHoldCommand{"a", first}), std::nullopt);
  EXPECT_EQ(removal(segment), Code::kBusy) << "the other one keeps it";
  EXPECT_EQ(catalog.code(hold("a")), std::nullopt);
  EXPECT_EQ(catalog.code(ReleaseHoldCommand{"a", first}), Code::kNotFound)
      << "a late release of a hold of the same name";
  for (const auto& [name, record] : catalog->holds())
    EXPECT_EQ(catalog.code(ReleaseHoldCommand{name, record.position}), std::nullopt);
  EXPECT_EQ(removal(segment), std::nullopt);
}

TEST_F(CatalogHolds, AreRefusedWithoutAName) {
  for (const std::string& name : {std::string(), std::string("a/b"), std::string(65, 'x')})
    EXPECT_EQ(catalog.code(hold(name)), Code::kInvalid);
  EXPECT_EQ(catalog.code(hold("a")), std::nullopt);
  EXPECT_EQ(catalog.code(hold("a")), Code::kExists);
  for (std::size_t i = 1; i < kHoldsMax; ++i)
    EXPECT_EQ(catalog.code(hold("h" + std::to_string(i))), std::nullopt);
  EXPECT_EQ(catalog.code(hold("more")), Code::kTooBig);
}

TEST_F(CatalogHolds, RememberHowFarOpenSegmentsWereReferredTo) {
  const InodeId file = catalog.file("f");
  const SegmentId open = catalog.segment(), empty = catalog.segment(), sealed = catalog.segment();
  catalog.run(catalog.write(file, {{0, 100, open, 8192}, {100, 50, open, 4096}}));
  catalog.run(catalog.write(file, {{1000, 100, sealed, 4096}}));
  catalog.run(SealSegmentCommand{sealed, 8192});
  catalog.run(hold("a"));
  catalog.run(catalog.resize(file, 0));
  EXPECT_EQ(catalog->holds().at("a").ends, (std::vector<HoldRecord::End>{{open, 8292}}));
  EXPECT_TRUE(catalog->holds().at("a").keeps(empty));
}

TEST_F(CatalogHolds, SurviveACrashAndAreTheSameInEveryCatalog) {
  const SegmentId segment = dead_segment();
  catalog.run(hold("a"));
  catalog.run(hold("b"));
  catalog.run(ReleaseHoldCommand{"b", catalog->holds().at("b").position});
  const Holds before = catalog->holds();
  const std::uint32_t digest = catalog.digest();
  catalog.checkpoint();
  catalog.reopen();
  EXPECT_EQ(catalog->holds(), before);
  EXPECT_EQ(removal(segment), Code::kBusy);
  TestCatalog other;
  for (std::uint64_t i = 0; i + 1 < catalog.log().size(); ++i)
    other.apply(catalog.log()[i].commands, catalog.log()[i].origin);
  EXPECT_EQ(other.digest(), digest);
  EXPECT_EQ(other->holds(), before);
}

TEST_F(CatalogHolds, RecordsThatAreDamagedAreTold) {
  HoldRecord record{{7}, at(1), at(2), {{{7 * 1024}, 5}, {{7 * 1024 + 1}, 6}}};
  const std::string bytes = encode(record);
  EXPECT_EQ(decode_hold(bytes).value(), record);
  EXPECT_FALSE(decode_hold(bytes.substr(0, bytes.size() - 1)));
  EXPECT_FALSE(decode_hold(bytes + '\0'));
  std::swap(record.ends[0], record.ends[1]);
  EXPECT_FALSE(decode_hold(encode(record))) << "not in order";
  record.ends = {{{8 * 1024}, 5}};
  EXPECT_FALSE(decode_hold(encode(record))) << "of a segment that it does not keep";
}

}  // namespace
}  // namespace kvsyncfs
