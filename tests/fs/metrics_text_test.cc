#include "fs/metrics_text.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fs/stats_report.h"

namespace kvsyncfs {
namespace {

using prometheus::MetricType;

std::map<std::string, prometheus::MetricFamily> families_of(std::string_view document) {
  std::map<std::string, prometheus::MetricFamily> found;
  for (auto& family : to_metrics(document)) {
    const std::string name = family.name;
    EXPECT_TRUE(found.emplace(name, std::move(family)).second) << name << " twice";
  }
  return found;
}

std::string label(const prometheus::ClientMetric& metric, const std::string& name) {
  for (const auto& each : metric.label)
    if (each.name == name) return each.value;
  return "(none)";
}

TEST(MetricsText, EveryNumberOfTheDocumentIsThereUnderItsPath) {
  StatsReport report;
  auto* const counters = reinterpret_cast<std::uint64_t*>(&report.engine);
  constexpr std::size_t kCount = sizeof(EngineCounters) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < kCount; ++i) counters[i] = i + 1;
  report.space = SpaceInfo{};
  report.space->free_inodes = 99;
  report.pid = 4711;
  const auto families = families_of(to_json(report));
  std::size_t engine = 0;
  for (const auto& [name, family] : families)
    if (name.starts_with("kvsyncfs_engine_")) ++engine;
  EXPECT_EQ(engine, kCount);
  EXPECT_EQ(families.at("kvsyncfs_space_free_inodes").metric[0].gauge.value, 99);
  EXPECT_EQ(families.at("kvsyncfs_pid").metric[0].gauge.value, 4711);
  EXPECT_EQ(families.at("kvsyncfs_engine_read_bytes").metric[0].counter.value, 1);
}

TEST(MetricsText, WhatMayFallIsAGaugeAndWhatOnlyGrowsACounter) {
  StatsReport report;
  report.operations = {{"read", 10, 1, 2, 3, 4, 5}};
  const auto families = families_of(to_json(report));
  for (const char* name : {"kvsyncfs_engine_flushes", "kvsyncfs_engine_leases_lost",
                           "kvsyncfs_operations_count", "kvsyncfs_operations_errors"})
    EXPECT_EQ(families.at(name).type, MetricType::Counter) << name;
  for (const char* name : {"kvsyncfs_engine_dirty_bytes", "kvsyncfs_engine_members_up",
                           "kvsyncfs_uptime_ns", "kvsyncfs_operations_latency_ns"})
    EXPECT_EQ(families.at(name).type, MetricType::Gauge) << name;
}

TEST(MetricsText, AnOperationIsALabelAndSoIsAQuantile) {
  StatsReport report;
  report.operations = {{"read", 10, 1, 20, 30, 40, 50}, {"fsync", 7, 0, 1, 1, 1, 1}};
  const auto families = families_of(to_json(report));
  const auto& count = families.at("kvsyncfs_operations_count").metric;
  ASSERT_EQ(count.size(), 2u);
  EXPECT_EQ(label(count[0], "operation"), "read");
  EXPECT_EQ(count[0].counter.value, 10);
  EXPECT_EQ(label(count[1], "operation"), "fsync");
  const auto& latency = families.at("kvsyncfs_operations_latency_ns").metric;
  ASSERT_EQ(latency.size(), 8u);
  std::map<std::string, double> read;
  for (const auto& metric : latency)
    if (label(metric, "operation") == "read") read[label(metric, "quantile")] = metric.gauge.value;
  EXPECT_EQ(read,
            (std::map<std::string, double>{{"0.5", 20}, {"0.99", 30}, {"0.999", 40}, {"1", 50}}));
}

TEST(MetricsText, TextsAreLabelsOfOneMetricAndAListIsItsLength) {
  StatsReport report;
  report.identity = {"/srv/kv", "/mnt/kv", 42, "", {"one reason", "another"}};
  report.label = "my \"label\"";
  report.history = {{1, 2, 3}};
  const auto families = families_of(to_json(report));
  const auto& info = families.at("kvsyncfs_info").metric.at(0);
  EXPECT_EQ(info.gauge.value, 1);
  EXPECT_EQ(label(info, "store"), "/srv/kv");
  EXPECT_EQ(label(info, "version"), KVSYNCFS_VERSION);
  EXPECT_EQ(label(info, "label"), "my \"label\"");
  EXPECT_EQ(families.at("kvsyncfs_degraded").metric.at(0).gauge.value, 2);
  EXPECT_FALSE(families.contains("kvsyncfs_history"));
}

TEST(MetricsText, WhatIsNotKnownIsLeftOut) {
  EXPECT_FALSE(families_of(to_json({})).contains("kvsyncfs_space_total_bytes"));
  EXPECT_TRUE(to_metrics("no JSON").empty());
  EXPECT_TRUE(to_metrics("[1]").empty());
}

}  // namespace
}  // namespace kvsyncfs
