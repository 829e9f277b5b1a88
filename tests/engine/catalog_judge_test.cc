#include "engine/catalog_judge.h"

#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

constexpr NodeId kSelf{1}, kSecond{2}, kThird{3};
using Verdict = CatalogJudge::Verdict;

/// A catalog that has come to the first position at which digests are compared.
class CatalogJudgeTest : public ::testing::Test {
 protected:
  CatalogJudgeTest() {
    EXPECT_TRUE(disk_.make_directory("/store"));
    CatalogOptions options = TestCatalog::options();
    options.keeps_history = true;
    EXPECT_TRUE(Catalog::format(disk_, options, 0, 0, at(1)));
    auto opened = Catalog::open(disk_, options);
    EXPECT_TRUE(opened);
    catalog_ = std::move(*opened);
    for (const NodeId node : {kSelf, kSecond, kThird}) run(JoinCommand{node, {1}, 0, 5000});
    while (catalog_->applied().value < kHistoryPeriod) run(EndCommand{{99}, {1}});
    own_ = catalog_->history();
    wrong_ = {own_.position, own_.digest + 1};
  }
  void run(Command command) {
    EXPECT_TRUE(catalog_->apply({catalog_->applied().value + 1}, {{std::move(command)}, {}}));
  }
  Verdict hear(NodeId node, const HistoryDigest& digest) {
    return judge_.hear(node, digest, *catalog_);
  }

  MemoryDisk disk_;
  std::unique_ptr<Catalog> catalog_;
  CatalogJudge judge_{kSelf};
  HistoryDigest own_, wrong_;
};

TEST_F(CatalogJudgeTest, EqualDigestsAndSuchOfOtherPlacesSayNothing) {
  EXPECT_EQ(own_.position, Position{kHistoryPeriod});
  EXPECT_EQ(hear(kSecond, own_), Verdict::kNone);
  EXPECT_EQ(hear(kThird, {}), Verdict::kNone);
  EXPECT_EQ(hear(kThird, {{2 * kHistoryPeriod}, 7}), Verdict::kNone) << "not applied here yet";
}

TEST_F(CatalogJudgeTest, TwoAgainstOneDecide) {
  EXPECT_EQ(hear(kSecond, own_), Verdict::kNone);
  EXPECT_EQ(hear(kThird, wrong_), Verdict::kOtherIsWrong);
}

TEST_F(CatalogJudgeTest, ANodeFindsItselfInTheMinority) {
  EXPECT_EQ(hear(kSecond, wrong_), Verdict::kOpen);
  EXPECT_EQ(hear(kThird, wrong_), Verdict::kOwnIsWrong);
}

TEST_F(CatalogJudgeTest, OneAgainstOneIsOpen) {
  EXPECT_EQ(hear(kThird, wrong_), Verdict::kOpen);
  EXPECT_EQ(hear(kThird, wrong_), Verdict::kOpen) << "the same node has one voice";
}

TEST_F(CatalogJudgeTest, WhoHasLeftHasNoVoice) {
  EXPECT_EQ(hear(kSecond, wrong_), Verdict::kOpen);
  run(EndCommand{kSecond, {1}});
  EXPECT_EQ(hear(kThird, wrong_), Verdict::kOpen);
  EXPECT_EQ(hear(kThird, own_), Verdict::kNone);
}

}  // namespace
}  // namespace kvsyncfs
