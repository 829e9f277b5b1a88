#include "engine/cluster/cuts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <vector>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPatience = 3 * kSecond;

/// Nodes 1 to `count` and what each is told to be unable to ask; all look at the lines every half
/// second.
class Nodes {
 public:
  explicit Nodes(std::uint64_t count) {
    for (std::uint64_t i = 1; i <= count; ++i) {
      Member member;
      member.id = {i};
      member.incarnation = {1};
      map_.members.push_back(member);
      judges_.push_back(std::make_unique<CutJudge>(NodeId{i}, kPatience));
      beats_.push_back(true);
    }
  }
  /// `from` cannot ask `to`.
  void cut(std::uint64_t from, std::uint64_t to) {
    map_.members[from - 1].unreached = with(from, to);
  }
  void cut_both(std::uint64_t a, std::uint64_t b) {
    cut(a, b);
    cut(b, a);
  }
  void mend(std::uint64_t node) { map_.members[node - 1].unreached.clear(); }
  void freeze(std::uint64_t node) { beats_[node - 1] = false; }
  void thaw(std::uint64_t node) { beats_[node - 1] = true; }

  /// Who gives way within so many seconds; such a node has no line any more.
  std::set<std::uint64_t> after(std::uint64_t seconds) {
    std::set<std::uint64_t> gone;
    for (const std::uint64_t end_ns = now_ns_ + seconds * kSecond; now_ns_ < end_ns;) {
      now_ns_ += kSecond / 2;
      for (std::size_t i = 0; i < map_.members.size(); ++i)
        if (beats_[i] && CutJudge::concerns(map_, map_.members[i])) ++map_.members[i].beat;
      for (std::size_t i = 0; i < judges_.size(); ++i)
        if (beats_[i] && !gone.contains(i + 1) && judges_[i]->look(map_, now_ns_))
          gone.insert(i + 1);
    }
    return gone;
  }

 private:
  std::vector<NodeId> with(std::uint64_t from, std::uint64_t to) {
    std::set<NodeId> all(map_.members[from - 1].unreached.begin(),
                         map_.members[from - 1].unreached.end());
    all.insert(NodeId{to});
    return {all.begin(), all.end()};
  }

  ClusterMap map_;
  std::vector<std::unique_ptr<CutJudge>> judges_;
  std::vector<bool> beats_;
  std::uint64_t now_ns_ = 100 * kSecond;
};

using Gone = std::set<std::uint64_t>;

TEST(CutJudge, OfTwoNodesTheOneWithTheGreaterIdGivesWay) {
  Nodes nodes(2);
  nodes.cut_both(1, 2);
  EXPECT_EQ(nodes.after(5), Gone{2});
}

TEST(CutJudge, ACutInOneDirectionIsACut) {
  Nodes up(2), down(2);
  up.cut(1, 2);
  down.cut(2, 1);
  EXPECT_EQ(up.after(5), Gone{2});
  EXPECT_EQ(down.after(5), Gone{2});
}

TEST(CutJudge, OfThreeNodesWithOneLinkCutOneGivesWay) {
  Nodes nodes(3);
  nodes.cut_both(1, 3);
  EXPECT_EQ(nodes.after(5), Gone{3});
}

TEST(CutJudge, WhoIsCutFromAllGivesWayToThem) {
  Nodes nodes(3);
  nodes.cut_both(1, 2);
  nodes.cut_both(1, 3);
  EXPECT_EQ(nodes.after(5), Gone{1});
}

TEST(CutJudge, WhoIsCutFromAllGivesWayAlsoWhereTheCutsAreSeenOneByOne) {
  Nodes nodes(3);
  nodes.cut_both(1, 2);
  EXPECT_EQ(nodes.after(2), Gone{});
  nodes.cut_both(1, 3);
  EXPECT_EQ(nodes.after(3), Gone{1});
}

TEST(CutJudge, ACutThatDoesNotLastCostsNobodyAnything) {
  Nodes nodes(2);
  nodes.cut_both(1, 2);
  EXPECT_EQ(nodes.after(2), Gone{});
  nodes.mend(1);
  nodes.mend(2);
  EXPECT_EQ(nodes.after(1), Gone{});
  nodes.cut_both(1, 2);
  EXPECT_EQ(nodes.after(2), Gone{});
}

TEST(CutJudge, NobodyGivesWayToWhoIsDeadOrFrozen) {
  Nodes nodes(3);
  nodes.freeze(1);
  nodes.cut(2, 1);
  nodes.cut(3, 1);
  EXPECT_EQ(nodes.after(20), Gone{});
}

TEST(CutJudge, WhoThawsHasTimeToBeReached) {
  Nodes nodes(2);
  nodes.freeze(1);
  nodes.cut(2, 1);
  EXPECT_EQ(nodes.after(4), Gone{});
  nodes.thaw(1);
  EXPECT_EQ(nodes.after(2), Gone{});
  nodes.mend(2);
  EXPECT_EQ(nodes.after(10), Gone{});
}

TEST(CutJudge, WhoStoodStillDoesNotJudgeByWhatItSawBefore) {
  Nodes nodes(2);
  nodes.cut_both(1, 2);
  EXPECT_EQ(nodes.after(2), Gone{});
  nodes.freeze(2);
  EXPECT_EQ(nodes.after(4), Gone{});
  nodes.thaw(2);
  EXPECT_EQ(nodes.after(2), Gone{});
}

RC_GTEST_PROP(CutJudge, AfterwardsAllWhoAreLeftReachEachOther, ()) {
  const auto cuts = *rc::gen::container<std::set<std::pair<std::uint64_t, std::uint64_t>>>(
      rc::gen::pair(rc::gen::inRange<std::uint64_t>(1, 6), rc::gen::inRange<std::uint64_t>(6, 11)));
  std::set<Cut> all;
  for (const auto& [low, high] : cuts) all.insert({NodeId{low}, NodeId{high}});
  const auto leaving = who_gives_way(all);
  for (const Cut& cut : all) RC_ASSERT(leaving.contains(cut.first) || leaving.contains(cut.second));
  RC_ASSERT(leaving.size() <= all.size());
}

}  // namespace
}  // namespace kvsyncfs
