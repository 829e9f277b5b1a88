#include "fs/stats_report.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

namespace kvsyncfs {
namespace {

namespace json = boost::json;

json::object parsed(const StatsReport& report) { return json::parse(to_json(report)).as_object(); }

std::string text(const json::value& value) { return value.as_string().c_str(); }

std::uint64_t number(const json::value& value) { return value.to_number<std::uint64_t>(); }

TEST(OpMetrics, EveryOperationHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kOpCount; ++i) names.insert(to_string(static_cast<OpKind>(i)));
  EXPECT_EQ(names.size(), kOpCount);
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(to_string(OpKind::kLookup), "lookup");
  EXPECT_EQ(to_string(OpKind::kCopyFileRange), "copy_file_range");
  EXPECT_EQ(to_string(OpKind::kLseek), "lseek");
}

TEST(OpMetrics, SummaryHasOnlyWhatWasCalled) {
  OpMetrics metrics;
  EXPECT_TRUE(summarize(metrics).empty());
  for (int i = 0; i < 998; ++i) metrics.record(OpKind::kRead, 100, false);
  metrics.record(OpKind::kRead, 5000, true);
  metrics.record(OpKind::kRead, 5000, true);
  metrics.record(OpKind::kLookup, 7, true);
  const auto summary = summarize(metrics);
  ASSERT_EQ(summary.size(), 2u);
  EXPECT_EQ(summary[0].name, "lookup");
  EXPECT_EQ(summary[0].count, 1u);
  EXPECT_EQ(summary[0].errors, 1u);
  EXPECT_EQ(summary[1].name, "read");
  EXPECT_EQ(summary[1].count, 1000u);
  EXPECT_EQ(summary[1].errors, 2u);
  EXPECT_EQ(summary[1].p50_ns, 100u);
  EXPECT_EQ(summary[1].p99_ns, 100u);
  EXPECT_EQ(summary[1].p999_ns, 5000u);
  EXPECT_EQ(summary[1].max_ns, 5000u);
}

TEST(StatsReport, TellsWhoAnswers) {
  StatsReport report;
  report.identity = {"/srv/kv", "/mnt/kv", 42, "", {"one reason", "another"}};
  report.uuid = "12345678-9abc-4def-8123-456789abcdef";
  report.label = "my \"label\"";
  report.pid = 4711;
  report.uptime_ns = std::uint64_t{1} << 60;
  const json::object object = parsed(report);
  EXPECT_EQ(text(object.at("version")), KVSYNCFS_VERSION);
  EXPECT_EQ(text(object.at("store")), "/srv/kv");
  EXPECT_EQ(text(object.at("mountpoint")), "/mnt/kv");
  EXPECT_EQ(text(object.at("uuid")), "12345678-9abc-4def-8123-456789abcdef");
  EXPECT_EQ(text(object.at("label")), "my \"label\"");
  EXPECT_EQ(number(object.at("pid")), 4711u);
  EXPECT_EQ(number(object.at("uptime_ns")), std::uint64_t{1} << 60);
  EXPECT_EQ(json::serialize(object.at("degraded")), "[\"one reason\",\"another\"]");
  EXPECT_EQ(text(object.at("transport")), "none: one node");
  EXPECT_EQ(text(object.at("model")), "none: heuristics only");
  report.is_clustered = true;
  EXPECT_EQ(text(parsed(report).at("transport")), "tcp");
}

TEST(StatsReport, TellsOperationsWithTheirLatencies) {
  StatsReport report;
  report.operations = {{"fsync", 10, 1, 20, 30, 40, 50}};
  const json::object operations = parsed(report).at("operations").as_object();
  ASSERT_EQ(operations.size(), 1u);
  const json::object fsync = operations.at("fsync").as_object();
  EXPECT_EQ(number(fsync.at("count")), 10u);
  EXPECT_EQ(number(fsync.at("errors")), 1u);
  const json::object latency = fsync.at("latency_ns").as_object();
  EXPECT_EQ(number(latency.at("p50")), 20u);
  EXPECT_EQ(number(latency.at("p99")), 30u);
  EXPECT_EQ(number(latency.at("p999")), 40u);
  EXPECT_EQ(number(latency.at("max")), 50u);
}

TEST(StatsReport, TellsEveryCounterOfTheEngineUnderItsOwnName) {
  StatsReport report;
  // Each counter another number, by its place.
  auto* const counters = reinterpret_cast<std::uint64_t*>(&report.engine);
  constexpr std::size_t kCount = sizeof(EngineCounters) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < kCount; ++i) counters[i] = i + 1;
  const json::object engine = parsed(report).at("engine").as_object();
  EXPECT_EQ(engine.size(), kCount);
  std::set<std::uint64_t> seen;
  for (const auto& counter : engine) seen.insert(number(counter.value()));
  EXPECT_EQ(seen.size(), kCount);
  EXPECT_EQ(number(engine.at("page_hits")), report.engine.page_hits);
  EXPECT_EQ(number(engine.at("log_durable")), report.engine.log_durable);
  EXPECT_EQ(number(engine.at("held_inodes")), report.engine.held_inodes);
  EXPECT_EQ(number(engine.at("errors")), report.engine.errors);
}

TEST(StatsReport, SpaceIsNullIfItIsNotKnown) {
  StatsReport report;
  EXPECT_TRUE(parsed(report).at("space").is_null());
  report.space = SpaceInfo{5, 4, 3, 2, 1};
  const json::object space = parsed(report).at("space").as_object();
  EXPECT_EQ(number(space.at("total_bytes")), 5u);
  EXPECT_EQ(number(space.at("free_bytes")), 4u);
  EXPECT_EQ(number(space.at("available_bytes")), 3u);
  EXPECT_EQ(number(space.at("total_inodes")), 2u);
  EXPECT_EQ(number(space.at("free_inodes")), 1u);
}

TEST(StatsReport, HistoryIsOldestFirst) {
  StatsReport report;
  report.history = {{5, 6, 7}, {50, 60, 70}};
  const json::array history = parsed(report).at("history").as_array();
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(number(history[0].at("uptime_ns")), 5u);
  EXPECT_EQ(number(history[0].at("page_hits")), 6u);
  EXPECT_EQ(number(history[0].at("page_misses")), 7u);
  EXPECT_EQ(number(history[1].at("uptime_ns")), 50u);
}

TEST(StatsReport, IsOneLineOfValidUtf8WhateverThePathsAre) {
  StatsReport report;
  std::string bytes;
  for (int i = 1; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  for (const std::string& path :
       {bytes, std::string("a\n\"b\\"), std::string("\xED\xA0\x80"), std::string("\xC0\x80"),
        std::string("\xF4\x90\x80\x80"), std::string("\xE2\x82"), std::string("\xE0\x80\xAF")}) {
    report.identity.store = path;
    const std::string line = to_json(report);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    boost::system::error_code error;
    json::parse(line, error);
    EXPECT_FALSE(error) << error.message() << ": " << line;
  }
}

TEST(StatsReport, KeepsTextThatIsUtf8) {
  StatsReport report;
  report.label = "Straße € 𝄞";
  EXPECT_EQ(text(parsed(report).at("label")), report.label);
  report.label = "\xE9t\xE9";
  EXPECT_EQ(text(parsed(report).at("label")), "\xEF\xBF\xBDt\xEF\xBF\xBD");
}

}  // namespace
}  // namespace kvsyncfs
