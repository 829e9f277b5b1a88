#include "tools/stat_table.h"

#include <gtest/gtest.h>

#include "tests/tools/stat_documents.h"

namespace kvsyncfs {
namespace {

StatOptions options_of(std::vector<std::string> arguments) {
  arguments.emplace_back("/mnt/kv");
  return *parse_stat_options(std::move(arguments));
}

StatDocument busy_daemon(std::uint64_t seconds, std::uint64_t reads) {
  auto answer = answer_at(seconds);
  answer["label"] = "photos";
  answer["mountpoint"] = "/mnt/kv";
  answer["degraded"] = {"memory is not locked"};
  answer["operations"] = {
      {"lookup", {{"count", 10}, {"errors", 4}}},
      {"read",
       {{"count", reads},
        {"errors", 0},
        {"latency_ns", {{"p50", 12'300}, {"p99", 45'000}, {"p999", 678'000}, {"max", 9'000'000}}}}},
      {"mkdir", {{"count", 0}, {"errors", 0}}}};
  answer["engine"] = {{"page_hits", 3 * reads},       {"page_misses", reads},
                      {"dirty_bytes", 1 << 20},       {"dirty_bytes_max", 64 << 20},
                      {"segment_written_bytes", 150}, {"appended_bytes", 100}};
  answer["space"] = {{"total_bytes", 4096 << 10}, {"free_bytes", 1024 << 10}};
  return document_of(answer);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(StatTable, ShowsRatesSinceTheStart) {
  const auto now = busy_daemon(100, 1000);
  const std::string table = to_table({nullptr, now, options_of({})});
  EXPECT_TRUE(contains(table, "photos"));
  EXPECT_TRUE(contains(table, "per second since the start"));
  EXPECT_TRUE(contains(table,
                       "  read                   10.0       1000        0  12.3 us    45 us"
                       "   678 us     9 ms\n"))
      << table;
  EXPECT_TRUE(contains(table, "hit rate 75.00 % over the last 1 min 40 s")) << table;
  EXPECT_TRUE(contains(table, "1 MiB of 64 MiB dirty, the oldest for"));
  EXPECT_TRUE(contains(table, "write amplification 1.50"));
  EXPECT_TRUE(contains(table, "1 MiB of 4 MiB free"));
  EXPECT_TRUE(contains(table, "DEGRADED      memory is not locked"));
  EXPECT_FALSE(contains(table, "mkdir")) << "an operation that never happened";
  EXPECT_LT(table.find("  read "), table.find("  lookup ")) << "the most frequent comes first";
}

TEST(StatTable, ShowsRatesOfTheIntervalWhenWatching) {
  const auto before = busy_daemon(100, 1000), now = busy_daemon(104, 1080);
  const std::string table = to_table({&before, now, options_of({"--watch=4"})});
  EXPECT_TRUE(contains(table, "per second over the last 4 s")) << table;
  EXPECT_TRUE(contains(table, "  read                   20.0       1080")) << table;
  EXPECT_TRUE(contains(table, "hit rate 75.00 % over the last 4 s")) << table;
}

TEST(StatTable, OfADaemonThatTellsLittleSaysWhatIsNotKnown) {
  const auto now = document_of(answer_at(0));
  const std::string table = to_table({nullptr, now, options_of({})});
  EXPECT_TRUE(contains(table, "hit rate n/a")) << table;
  EXPECT_TRUE(contains(table, "write amplification n/a"));
  EXPECT_TRUE(contains(table, "n/a of n/a free"));
}

TEST(StatTable, WithoutReadsThereIsNoHitRateYet) {
  const auto now = hits_at(10, 0, 0);
  EXPECT_TRUE(contains(to_table({nullptr, now, options_of({})}), "no reads yet"));
  const auto options = options_of({"--hit-rate", "--threshold=95%"});
  EXPECT_TRUE(contains(to_table({nullptr, now, options}), "no reads yet in the last 10 s"));
  EXPECT_TRUE(is_threshold_met({nullptr, now, options}));
}

TEST(StatTable, ThresholdIsMissedOnlyBelowIt) {
  const auto options = options_of({"--hit-rate", "--threshold=95%"});
  const auto exact = hits_at(10, 95, 5), below = hits_at(10, 94, 6);
  EXPECT_TRUE(is_threshold_met({nullptr, exact, options}));
  EXPECT_FALSE(is_threshold_met({nullptr, below, options}));
  EXPECT_TRUE(is_threshold_met({nullptr, below, options_of({"--hit-rate"})}));
  EXPECT_TRUE(contains(to_table({nullptr, exact, options}), "met"));
  EXPECT_TRUE(contains(to_table({nullptr, below, options}), "MISSED"));
}

TEST(StatTable, ThresholdJudgesTheWindowAndNotTheWholeLife) {
  const auto now = hits_at(100, 1000, 100, {{80 * kSecondNs, 1000, 0}});
  EXPECT_FALSE(is_threshold_met(
      {nullptr, now, options_of({"--hit-rate", "--threshold=50%", "--window=20"})}));
  EXPECT_TRUE(is_threshold_met({nullptr, now, options_of({"--hit-rate", "--threshold=50%"})}));
}

TEST(StatTable, WindowThatWasAskedForWinsOverTheInterval) {
  const auto before = hits_at(99, 1000, 0);
  const auto now = hits_at(100, 1000, 100, {{80 * kSecondNs, 500, 0}});
  const auto rate = recent_hit_rate({&before, now, options_of({"--watch=1", "--window=20"})});
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->length_ns, 20 * kSecondNs);
}

TEST(StatTable, PartsThatAreNotActiveSaySo) {
  auto answer = answer_at(1);
  answer["transport"] = "tcp";
  const auto now = document_of(answer);
  const std::string table = to_table({nullptr, now, options_of({"--qp", "--model"})});
  EXPECT_TRUE(contains(table, "queue pairs   not active: no RDMA transport (transport tcp)"))
      << table;
  EXPECT_TRUE(contains(table, "model         not active")) << table;
  EXPECT_FALSE(contains(table, "write buffer"));
}

TEST(StatTable, JsonIsTheAnswerAndWhatFollowsFromIt) {
  const auto now = busy_daemon(100, 1000);
  const std::string text = to_json({nullptr, now, options_of({"--json"})});
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line a document";
  const auto value = boost::json::parse(text);
  EXPECT_EQ(value.at("pid"), 7);
  EXPECT_EQ(value.at("operations").at("read").at("count"), 1000);
  EXPECT_EQ(value.at("write_amplification"), 1.5);
  EXPECT_EQ(value.at("hit_rate"), 0.75);
  EXPECT_EQ(value.at("hit_rate_total"), 0.75);
  EXPECT_EQ(value.at("hit_rate_window").at("seconds"), 100.0);
  EXPECT_EQ(value.at("hit_rate_window").at("hits"), 3000);
  EXPECT_EQ(value.at("hit_rate_window").at("misses"), 1000);
  EXPECT_FALSE(value.as_object().contains("threshold"));
}

TEST(StatTable, JsonOfPartsHasOnlyThem) {
  const auto now = hits_at(10, 0, 0);
  const auto options = options_of({"--json", "--hit-rate", "--threshold=95%", "--qp", "--model"});
  const auto value = boost::json::parse(to_json({nullptr, now, options}));
  EXPECT_EQ(value.as_object().size(), 7u);
  EXPECT_TRUE(value.at("hit_rate").is_null());
  EXPECT_TRUE(value.at("hit_rate_total").is_null());
  EXPECT_EQ(value.at("threshold"), 0.95);
  EXPECT_EQ(value.at("threshold_met"), true);
  EXPECT_EQ(value.at("qp").at("active"), false);
  EXPECT_EQ(value.at("model").at("active"), false);
}

}  // namespace
}  // namespace kvsyncfs
