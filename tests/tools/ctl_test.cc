#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tools/ctl_copies.h"
#include "tools/ctl_locate.h"
#include "tools/ctl_nodes.h"
#include "tools/ctl_options.h"
#include "tools/ctl_snapshot.h"

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
  EXPECT_FALSE(removal->force);
  EXPECT_TRUE(parse_ctl_options({"/s", "remove", "beta", "--force"})->force);
  EXPECT_EQ(parse_ctl_options({"/s", "maintenance", "b", "--for", "30m"})->seconds, 1800);
  EXPECT_TRUE(parse_ctl_options({"/s", "maintenance", "b", "--end"})->cancel);
  EXPECT_TRUE(parse_ctl_options({"/s", "drain", "b", "--cancel"})->cancel);
  EXPECT_TRUE(parse_ctl_options({"/s", "evict", "b", "--cancel"})->cancel);
  EXPECT_EQ(parse_ctl_options({"/s", "evict", "b"})->command, CtlCommand::kEvict);
  EXPECT_EQ(parse_ctl_options({"/s", "heal", "--rate", "100M", "--now"})->rate_bytes, 100u << 20);
  EXPECT_TRUE(parse_ctl_options({"/s", "reseed-log", "--force"})->force);
  EXPECT_TRUE(parse_ctl_options({"/s", "reseed-log", "--dry-run"})->dry_run);
  EXPECT_EQ(parse_ctl_options({"/s", "take-catalog", "--yes"})->command, CtlCommand::kTakeCatalog);
  const auto snapshot =
      parse_ctl_options({"/s", "snapshot-catalog", "/b/monday", "--name", "m", "--for", "7d"});
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->command, CtlCommand::kSnapshotCatalog);
  EXPECT_EQ(snapshot->argument, "/b/monday");
  EXPECT_EQ(snapshot->name, "m");
  EXPECT_EQ(snapshot->seconds, 7 * 86'400);
  EXPECT_TRUE(parse_ctl_options({"/s", "restore-catalog", "/b/monday", "--dry-run"})->dry_run);
  EXPECT_EQ(parse_ctl_options({"/s", "release-snapshot", "m"})->argument, "m");
  EXPECT_TRUE(parse_ctl_options({"--help"})->help);
  EXPECT_TRUE(parse_ctl_options({"-V"})->version);
  EXPECT_NE(ctl_help().find("  nodes "), std::string::npos);
}

TEST(CtlSnapshot, IsNamedAsAskedOrAsItsFile) {
  EXPECT_EQ(hold_name("/b/monday.catalog", "").value(), "monday.catalog");
  EXPECT_EQ(hold_name("monday", "").value(), "monday");
  EXPECT_EQ(hold_name("/b/of monday", "monday").value(), "monday");
  EXPECT_EQ(hold_name("/b/of monday", "").error().code, Code::kInvalid);
  EXPECT_EQ(hold_name("/b/", "").error().code, Code::kInvalid);
  EXPECT_EQ(hold_name("/b/a", "x/y").error().code, Code::kInvalid);
}

TEST(CtlSnapshot, TheTableTellsWhatEachKeeps) {
  const auto answer = boost::json::parse(
      R"({"holds":[{"name":"a","position":7,"taken_s":0,"expires_s":86400,"segments":2,)"
      R"("kept_bytes":1048576}]})");
  const std::string text = snapshots_text(answer.get_object());
  for (const char* word : {"KEEPS", "a ", "1970-01-01 00:00:00Z", "1970-01-02 00:00:00Z", " 7 "})
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  EXPECT_EQ(snapshots_text({}), "no snapshot keeps anything\n");
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
      {{"/s", "drain"}, "NODE"},
      {{"/s", "snapshot-catalog"}, "FILE"},
      {{"/s", "restore-catalog", "f", "--name", "n"}, "--name"},
      {{"/s", "release-snapshot"}, "NAME"},
      {{"/s", "maintenance", "b"}, "--for"},
      {{"/s", "maintenance", "b", "--for", "30m", "--end"}, "--end"},
      {{"/s", "maintenance", "b", "--for", "soon"}, "'soon'"},
      {{"/s", "heal", "--rate", "0"}, "--rate"},
      {{"/s", "heal", "--rate", "50%"}, "'50%'"},
      {{"/s", "nodes", "--now"}, "--now"},
      {{"/s", "take-catalog"}, "--yes"},
      {{"/s", "take-catalog", "--force"}, "--force"},
      {{"/s", "drain", "b", "--dry-run"}, "--dry-run"},
      {{"/s", "heal", "--cancel"}, "--cancel"},
      {{"/s", "drain", "b", "--force"}, "--force"},
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

TEST(CtlOptions, TimesHaveAUnitAndABound) {
  EXPECT_EQ(parse_duration("90").value(), 90);
  EXPECT_EQ(parse_duration("90s").value(), 90);
  EXPECT_EQ(parse_duration("2h").value(), 7200);
  EXPECT_EQ(parse_duration("1d").value(), 86'400);
  for (const char* bad : {"", "0", "-5m", "5w", "m", "9999999d", "1 h"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST_F(CtlNodes, StateTellsWhatAnOperatorWantsOfANode) {
  nodes_[0].is_draining = nodes_[1].is_draining = nodes_[1].is_maintained = true;
  const std::string table = nodes_table(config_, nodes_, {{{1}, 3}});
  EXPECT_NE(table.find("member, draining (3 segments left)  "), std::string::npos) << table;
  EXPECT_NE(table.find("away, maintenance, draining "), std::string::npos) << table;
  EXPECT_NE(nodes_table(config_, nodes_, {{{1}, 0}}).find("member, drained  "), std::string::npos);
  const auto document = boost::json::parse(nodes_json(config_, nodes_, {{{1}, 3}})).as_object();
  const auto& alpha = document.at("nodes").as_array()[0].as_object();
  EXPECT_EQ(alpha.at("draining"), true);
  EXPECT_EQ(alpha.at("maintenance"), false);
  EXPECT_EQ(alpha.at("segments_left"), 3);
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

TEST(CtlCopies, ABadCopyIsNamedWithItsNodeAndWhatBecameOfIt) {
  const auto answer = boost::json::parse(R"({"bad":[
      {"node":3,"segment":5,"page":4,"count":2,"why":"bad checksum","mended":true,"paths":[]},
      {"node":0,"segment":6,"page":1,"count":0,"why":"gone","mended":false,"paths":["/a","/b"]}],
      "nodes":[{"id":3,"name":"beta","lives":true}]})")
                          .as_object();
  EXPECT_EQ(bad_copies_text(answer),
            "beta: segment 5 pages 4 to 5: bad checksum; mended from another copy\n"
            "segment 6 from page 1: gone; not mended\n  /a\n  /b\n");
  EXPECT_EQ(left_bad(answer), 1u);
  EXPECT_EQ(left_bad({}), 0u);
}

TEST(CtlCopies, HealTellsWhatIsLeftAndHowLongItTakes) {
  const auto report = boost::json::parse(R"({"at_risk":{"segments":2,"bytes":1048576},
      "lost":{"segments":1,"bytes":4096},"due_segments":1,"healed_bytes":512,"rate_bytes":1024,
      "delay_ns":600000000000,"leaving":[{"id":4,"name":"d","left":{"segments":1,"bytes":1048576}}],
      "away":[{"id":3,"name":"c","lives":false}],"maintained":[{"id":3,"name":"c"}]})")
                          .as_object();
  EXPECT_EQ(heal_bytes_left(report), 2u << 20);
  EXPECT_EQ(heal_text(report, 1 << 20),
            "at risk: 2 segments, 1 MiB to copy; 1 are due now\n"
            "without a live copy: 1 segment, 4 KiB; kvsyncfs-ctl lost names the files\n"
            "drained: d: 1 segment, 1 MiB left\n"
            "away: c; replaced after 10 min 0 s\n"
            "absence is planned: c\n"
            "copied by this node: 512 B; at most 1 KiB/s on each node\n"
            "1 MiB/s now, about 3 s left\n");
  EXPECT_EQ(heal_text({}, 0),
            "at risk: nothing\nwithout a live copy: nothing\n"
            "copied by this node: 0 B; at most 0 B/s on each node\n");
}

TEST(CtlCopies, ANodeIsNotRemovedSilentlyWithTheLastCopies) {
  const auto answer = [](int segments) {
    return boost::json::object{{"last", {{"segments", segments}, {"bytes", 4096}}}};
  };
  EXPECT_EQ(last_copies_text("b", answer(0)), "");
  const std::string why = last_copies_text("b", answer(2));
  for (const char* word : {"node b ", "2 segments, 4 KiB", "--force", " lost "})
    EXPECT_NE(why.find(word), std::string::npos) << why;
}

TEST(CtlCopies, LostNamesFilesAndWhoHadThem) {
  const auto lost = boost::json::parse(R"({"lost":{"segments":1,"bytes":4096},"paths":["/a"],
      "without_path":1,"cut":true,"nodes":[{"id":3,"name":"c","lives":false}]})")
                        .as_object();
  EXPECT_EQ(lost_text(lost),
            "1 segment, 4 KiB, held by c (away)\n  /a\n  and 1 without a name\n  and more\n");
  EXPECT_EQ(lost_text({}), "nothing is lost\n");
}

}  // namespace
}  // namespace kvsyncfs
