#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tools/ctl_nodes.h"
#include "tools/ctl_options.h"

namespace kvsyncfs {
namespace {

TEST(CtlOptions, AStoreACommandAndOptionsInAnyOrder) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"/s", "nodes", "--json"}, {"--json", "/s", "nodes"}}) {
    const auto options = parse_ctl_options(words);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->store, "/s");
    EXPECT_EQ(options->command, CtlCommand::kNodes);
    EXPECT_TRUE(options->json);
  }
  EXPECT_FALSE(parse_ctl_options({"/s", "nodes"})->json);
  EXPECT_TRUE(parse_ctl_options({"--help"})->help);
  EXPECT_TRUE(parse_ctl_options({"-V"})->version);
  EXPECT_NE(ctl_help().find("  nodes "), std::string::npos);
}

TEST(CtlOptions, ErrorsNameTheArgument) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{}, "store"},
      {{"/s"}, "command"},
      {{"/s", "frobnicate"}, "'frobnicate'"},
      {{"/s", "nodes", "more"}, "more"},
      {{"/s", "nodes", "--frobnicate"}, "--frobnicate"}};
  for (const auto& [words, named] : cases) {
    const auto options = parse_ctl_options(words);
    ASSERT_FALSE(options) << named;
    EXPECT_NE(options.error().detail.find(named), std::string::npos) << options.error().detail;
  }
}

class CtlNodes : public ::testing::Test {
 protected:
  CtlNodes() {
    config_.volume = "v";
    config_.node = "alpha";
    nodes_.resize(2);
    nodes_[0].name = "alpha";
    nodes_[0].record = {{1}, {}, "r1", {5, 0}};
    nodes_[0].member = NodeState{{"10.0.0.1:7420", "[fd00::1]:7420"}, 1 << 20, 1536, "0.1.0"};
    nodes_[1].name = "b";
    nodes_[1].record.id = {12};
  }
  ClusterConfig config_;
  std::vector<ClusterNode> nodes_;
};

TEST_F(CtlNodes, ATableWithAStarAtTheOwnNode) {
  EXPECT_EQ(nodes_table(config_, nodes_),
            "NODE    ID  RACK  STATE   ADDRESSES                     CAPACITY  FREE     VERSION\n"
            "alpha*  1   r1    member  10.0.0.1:7420,[fd00::1]:7420  1 MiB     1.5 KiB  0.1.0\n"
            "b       12  -     away    -                             -         -        -\n");
}

TEST_F(CtlNodes, JsonTellsOfAMemberWhatOneThatIsAwayDoesNotTell) {
  const auto document = boost::json::parse(nodes_json(config_, nodes_)).as_object();
  EXPECT_EQ(document.at("volume"), "v");
  const auto& nodes = document.at("nodes").as_array();
  ASSERT_EQ(nodes.size(), 2u);
  const auto& alpha = nodes[0].as_object();
  EXPECT_EQ(alpha.at("name"), "alpha");
  EXPECT_EQ(alpha.at("id"), 1);
  EXPECT_EQ(alpha.at("rack"), "r1");
  EXPECT_EQ(alpha.at("state"), "member");
  EXPECT_EQ(alpha.at("this"), true);
  EXPECT_EQ(alpha.at("addresses").as_array().size(), 2u);
  EXPECT_EQ(alpha.at("capacity_bytes"), 1 << 20);
  EXPECT_EQ(alpha.at("free_bytes"), 1536);
  EXPECT_EQ(alpha.at("version"), "0.1.0");
  const auto& b = nodes[1].as_object();
  EXPECT_EQ(b.at("state"), "away");
  EXPECT_EQ(b.at("this"), false);
  EXPECT_FALSE(b.contains("addresses"));
}

}  // namespace
}  // namespace kvsyncfs
