#include "engine/policy/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace kvsyncfs {
namespace {

constexpr NodeId kNobody{1000};

std::vector<Candidate> even_nodes(std::uint64_t count) {
  std::vector<Candidate> nodes;
  for (std::uint64_t i = 1; i <= count; ++i) nodes.push_back({NodeId{i}, "", 1.0});
  return nodes;
}

/// A cluster of 1 to 12 nodes in up to four racks; some get nothing.
std::vector<Candidate> any_nodes() {
  static const std::string kRacks[] = {"", "a", "b", "c"};
  std::vector<Candidate> nodes;
  const auto count = *rc::gen::inRange<std::uint64_t>(1, 13);
  for (std::uint64_t i = 1; i <= count; ++i)
    nodes.push_back(
        {NodeId{i}, kRacks[*rc::gen::inRange(0, 4)], *rc::gen::element(0.0, 0.5, 1.0, 3.0, 16.0)});
  return nodes;
}

std::set<NodeId> as_set(const std::vector<NodeId>& nodes) { return {nodes.begin(), nodes.end()}; }

std::vector<Candidate> without(std::vector<Candidate> nodes, NodeId node) {
  std::erase_if(nodes, [&](const Candidate& c) { return c.node == node; });
  return nodes;
}

RC_GTEST_PROP(Placement, TheOwnerIsFirstAndNobodyTwiceAndNoNodeWithoutWeight, ()) {
  const auto nodes = any_nodes();
  const auto replicas = *rc::gen::inRange<std::size_t>(1, 6);
  const NodeId owner{*rc::gen::inRange<std::uint64_t>(1, 14)};
  const auto holders = choose_holders(*rc::gen::arbitrary<std::uint64_t>(), nodes, replicas, owner);
  std::size_t willing = 1;
  for (const Candidate& node : nodes) willing += node.node != owner && node.weight > 0;
  RC_ASSERT(holders.size() == std::min(replicas, willing));
  RC_ASSERT(holders.front() == owner);
  RC_ASSERT(as_set(holders).size() == holders.size());
  for (const Candidate& node : nodes)
    if (node.node != owner && !(node.weight > 0)) RC_ASSERT(!as_set(holders).contains(node.node));
}

RC_GTEST_PROP(Placement, RacksDifferWhereTheyCan, ()) {
  const auto nodes = any_nodes();
  const auto replicas = *rc::gen::inRange<std::size_t>(1, 6);
  const NodeId owner{*rc::gen::inRange<std::uint64_t>(1, nodes.size() + 1)};
  const auto holders = choose_holders(*rc::gen::arbitrary<std::uint64_t>(), nodes, replicas, owner);
  std::map<std::string_view, std::size_t> used, left;
  for (const Candidate& node : nodes) {
    const bool holds = as_set(holders).contains(node.node);
    ++(holds ? used : left)[node.rack];
    if (!holds && !(node.weight > 0)) --left[node.rack];
  }
  for (const auto& [full, count] : used)
    for (const auto& [rack, free] : left)  // it could have taken one of these instead
      if (free > 0) RC_ASSERT(used[rack] + 1 >= count);
}

RC_GTEST_PROP(Placement, TheOrderOfTheCandidatesDoesNotMatter, ()) {
  auto nodes = any_nodes();
  const auto group = *rc::gen::arbitrary<std::uint64_t>();
  const NodeId owner{*rc::gen::inRange<std::uint64_t>(1, 14)};
  const auto holders = choose_holders(group, nodes, 3, owner);
  std::reverse(nodes.begin(), nodes.end());
  RC_ASSERT(choose_holders(group, nodes, 3, owner) == holders);
  std::rotate(nodes.begin(),
              nodes.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, 12) %
                                  static_cast<std::ptrdiff_t>(nodes.size()),
              nodes.end());
  RC_ASSERT(choose_holders(group, nodes, 3, owner) == holders);
}

RC_GTEST_PROP(Placement, ANodeThatComesTakesAtMostOnePlaceAndOneThatGoesLeavesOnlyItsOwn, ()) {
  const auto nodes = any_nodes();
  const auto group = *rc::gen::arbitrary<std::uint64_t>();
  const auto replicas = *rc::gen::inRange<std::size_t>(1, 6);
  const NodeId moving{*rc::gen::inRange<std::uint64_t>(1, nodes.size() + 1)};
  const auto with = as_set(choose_holders(group, nodes, replicas, kNobody));
  const auto without_it = as_set(choose_holders(group, without(nodes, moving), replicas, kNobody));
  std::set<NodeId> added, removed;
  std::set_difference(with.begin(), with.end(), without_it.begin(), without_it.end(),
                      std::inserter(added, added.end()));
  std::set_difference(without_it.begin(), without_it.end(), with.begin(), with.end(),
                      std::inserter(removed, removed.end()));
  RC_ASSERT(added.empty() || added == std::set{moving});
  RC_ASSERT(removed.size() <= added.size());
}

TEST(Placement, SharesFollowTheWeights) {
  std::vector<Candidate> nodes;
  constexpr double kWeights[] = {1, 2, 3, 4, 10};
  for (std::uint64_t i = 0; i < std::size(kWeights); ++i)
    nodes.push_back({NodeId{i + 1}, "", kWeights[i]});
  std::map<NodeId, double> wins;
  constexpr int kGroups = 40'000;
  for (std::uint64_t group = 0; group < kGroups; ++group)
    ++wins[choose_holders(group, nodes, 2, kNobody)[1]];
  for (const Candidate& node : nodes)
    EXPECT_NEAR(wins[node.node] / kGroups, node.weight / 20, 0.01) << node.node.value;
}

TEST(Placement, EvenNodesHoldEvenSharesOfAllCopies) {
  const auto nodes = even_nodes(10);
  std::map<NodeId, double> copies;
  constexpr int kGroups = 20'000;
  for (std::uint64_t group = 0; group < kGroups; ++group)
    for (const NodeId holder : choose_holders(group, nodes, 4, kNobody)) ++copies[holder];
  for (const Candidate& node : nodes)
    EXPECT_NEAR(copies[node.node] / (3.0 * kGroups), 0.1, 0.003) << node.node.value;
}

TEST(Placement, AJoiningNodeMovesAboutItsShare) {
  const auto before = even_nodes(9), after = even_nodes(10);
  constexpr int kGroups = 20'000, kOthers = 2;
  int moved = 0;
  for (std::uint64_t group = 0; group < kGroups; ++group) {
    const auto old = as_set(choose_holders(group, before, 1 + kOthers, kNobody));
    for (const NodeId holder : choose_holders(group, after, 1 + kOthers, kNobody))
      moved += !old.contains(holder);
  }
  EXPECT_NEAR(moved / double{kGroups * kOthers}, 0.1, 0.005);
}

TEST(Placement, WeightsThatAreNoneAreNeverChosen) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<Candidate> nodes{{NodeId{1}, "", -1},
                                     {NodeId{2}, "", kNan},
                                     {NodeId{3}, "", kInfinity},
                                     {NodeId{4}, "", 1e-300},
                                     {NodeId{5}, "", 0}};
  for (std::uint64_t group = 0; group < 100; ++group)
    EXPECT_EQ(choose_holders(group, nodes, 5, NodeId{9}), (std::vector{NodeId{9}, NodeId{4}}));
  EXPECT_TRUE(choose_holders(1, nodes, 0, NodeId{9}).empty());
}

TEST(Placement, AnotherRackIsTakenBeforeABetterScore) {
  std::vector<Candidate> nodes{{NodeId{1}, "a", 1}, {NodeId{2}, "a", 1e6}, {NodeId{3}, "b", 1}};
  for (std::uint64_t group = 0; group < 100; ++group) {
    EXPECT_EQ(choose_holders(group, nodes, 2, NodeId{1}), (std::vector{NodeId{1}, NodeId{3}}));
    EXPECT_EQ(choose_holders(group, nodes, 3, NodeId{1})[2], NodeId{2});
  }
}

/// Nodes of two versions agree: these answers stay.
TEST(Placement, AnswersArePinned) {
  const std::vector<Candidate> nodes{{NodeId{1}, "a", 1}, {NodeId{2}, "b", 2}, {NodeId{3}, "c", 3},
                                     {NodeId{4}, "a", 4}, {NodeId{5}, "b", 5}, {NodeId{6}, "c", 6}};
  const auto text = [&](std::uint64_t group) {
    std::string out;
    for (const NodeId node : choose_holders(group, nodes, 4, NodeId{1}))
      out += std::to_string(node.value);
    return out;
  };
  EXPECT_EQ(text(0) + " " + text(1) + " " + text(2) + " " + text(~std::uint64_t{0}),
            "1326 1534 1654 1652");
}

TEST(Placement, TheWeightIsTheCapacityUntilTheStoreIsFull) {
  constexpr std::uint64_t kGib = 1u << 30;
  EXPECT_EQ(placement_weight(100 * kGib, 50 * kGib), 100.0);
  EXPECT_EQ(placement_weight(100 * kGib, 2 * kGib), 100.0);
  EXPECT_EQ(placement_weight(100 * kGib, 2 * kGib - 1), 0.0);
  EXPECT_EQ(placement_weight(0, 0), 0.0);
}

TEST(Placement, CopiesThatOneNodeMakesAnewAreSpreadOverAllOthers) {
  const auto nodes = even_nodes(6);
  std::map<NodeId, int> got;
  constexpr int kSegments = 1000;
  const NodeId holders[] = {{1}};
  for (int i = 0; i < kSegments; ++i)  // ids as the log gives them
    ++got[choose_new_holder(static_cast<std::uint64_t>(7 + 3 * i) * 1024, nodes, holders)];
  EXPECT_EQ(got.size(), 5u);
  EXPECT_FALSE(got.contains({1}));
  for (const auto& [node, count] : got) EXPECT_NEAR(count, kSegments / 5, 60) << node.value;
}

RC_GTEST_PROP(Placement, ANewHolderIsInARackThatHasTheFewestOfThem, ()) {
  const auto nodes = any_nodes();
  const auto replicas = *rc::gen::inRange<std::size_t>(1, 6);
  const auto group = *rc::gen::arbitrary<std::uint64_t>();
  const auto holders = choose_holders(group, nodes, replicas, nodes.front().node);
  const NodeId chosen = choose_new_holder(group + 1, nodes, holders);
  std::map<std::string_view, std::size_t> holders_in;
  for (const Candidate& node : nodes) holders_in[node.rack] += as_set(holders).contains(node.node);
  std::size_t fewest = 100;
  for (const Candidate& node : nodes)
    if (node.weight > 0 && !as_set(holders).contains(node.node))
      fewest = std::min(fewest, holders_in[node.rack]);
  RC_ASSERT((chosen == NodeId{}) == (fewest == 100));
  for (const Candidate& node : nodes) {
    if (node.node != chosen) continue;
    RC_ASSERT(holders_in[node.rack] == fewest);
    RC_ASSERT(node.weight > 0 && !as_set(holders).contains(chosen));
  }
}

}  // namespace
}  // namespace kvsyncfs
