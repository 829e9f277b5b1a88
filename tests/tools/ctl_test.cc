#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tools/ctl_locate.h"
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
  const auto locate = parse_ctl_options({"/s", "locate", "a b/c"});
  ASSERT_TRUE(locate);
  EXPECT_EQ(locate->command, CtlCommand::kLocate);
  EXPECT_EQ(locate->argument, "a b/c");
  const auto removal = parse_ctl_options({"/s", "remove", "beta"});
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->command, CtlCommand::kRemove);
  EXPECT_EQ(removal->argument, "beta");
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
      {{"/s", "remove"}, "NODE"},
      {{"/s", "locate"}, "PATH"},
      {{"/s", "locate", "a", "b"}, "b"},
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

boost::json::object location() {
  return boost::json::parse(R"({"inode":7,"size_bytes":20480,"dirty_bytes":4096,"extents":[
      {"offset":0,"length":4096,"segment":5,"segment_offset":4096,"owner":1,"holders":[1,3],
       "here":true,"pages":1,"pages_in_memory":1},
      {"offset":4096,"length":4096,"segment":6,"segment_offset":4096,"owner":3,"holders":[3],
       "here":false,"pages":1,"pages_in_memory":0},
      {"offset":8192,"length":4096,"segment":5,"segment_offset":8192,"owner":1,"holders":[1],
       "here":false,"pages":1,"pages_in_memory":0},
      {"offset":12288,"length":8192,"segment":0,"segment_offset":0,"owner":0,"holders":[]}],
      "nodes":[{"id":1,"name":"alpha","lives":true},{"id":3,"name":"","lives":false}]})")
      .as_object();
}

TEST(CtlLocate, EachExtentWithWhoHasItAndWhereAReadFindsIt) {
  EXPECT_EQ(location_table("a/b", location()),
            "/a/b: 20480 bytes, inode 7, 4 extents, 4 KiB in memory and in no segment yet\n"
            "OFFSET  LENGTH  SEGMENT  AT    OWNER          HOLDERS              FOUND     MEMORY\n"
            "0       4096    5        4096  alpha          alpha,node 3 (away)  memory    1/1\n"
            "4096    4096    6        4096  node 3 (away)  node 3 (away)        nowhere   0/1\n"
            "8192    4096    5        8192  alpha          alpha                peer      0/1\n"
            "12288   8192    -        -     -              -                    reserved  0/0\n");
}

TEST(CtlLocate, AnAnswerThatTellsNothingIsShownAsSuch) {
  const auto nonsense = boost::json::parse(R"({"extents":[3,{"holders":["x"]}]})").as_object();
  EXPECT_TRUE(location_table("f", nonsense).starts_with("/f: 0 bytes"));
}

}  // namespace
}  // namespace kvsyncfs
