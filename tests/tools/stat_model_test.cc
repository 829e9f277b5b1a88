#include "tools/stat_model.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

TEST(StatDocument, RefusesWhatIsNotAnAnswer) {
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"pid":1})", R"({"pid":-1,"uptime_ns":1})",
        R"({"pid":"1","uptime_ns":1})", R"({"pid":1,"uptime_ns":1} x)"}) {
    const auto document = StatDocument::parse(text);
    ASSERT_FALSE(document) << text;
    EXPECT_EQ(document.error().code, Code::kCorrupt) << text;
  }
}

TEST(StatDocument, DeepNestingIsRefusedNotFollowed) {
  EXPECT_FALSE(StatDocument::parse(std::string(100'000, '[')));
}

TEST(StatDocument, GivesCountsTextsAndOperations) {
  const auto document = StatDocument::parse(R"({
    "pid": 12, "uptime_ns": 5000000000, "label": "kv", "degraded": ["memlock limit", 3],
    "engine": {"errors": 18446744073709551615, "page_hits": 3, "page_misses": 1},
    "space": {"free_bytes": 7},
    "history": [{"uptime_ns": 1, "page_hits": 2, "page_misses": 0}, {"uptime_ns": 2}, 5],
    "operations": {"read": {"count": 2, "errors": 1,
                            "latency_ns": {"p50": 1, "p99": 2, "p999": 3, "max": 4}},
                   "write": {"count": 0}, "odd": 3}})");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->pid(), 12u);
  EXPECT_EQ(document->uptime_ns(), 5'000'000'000u);
  EXPECT_EQ(document->text("label"), "kv");
  EXPECT_EQ(document->words("degraded"), std::vector<std::string>{"memlock limit"});
  EXPECT_EQ(document->number("engine", "errors"), 18'446'744'073'709'551'615u);
  EXPECT_EQ(document->number("space", "free_bytes"), 7u);
  EXPECT_EQ(document->hits(), (HitSample{5'000'000'000, 3, 1}));
  EXPECT_EQ(document->history(), (std::vector<HitSample>{{1, 2, 0}}));
  const auto operations = document->operations();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].name, "read");
  EXPECT_EQ(operations[0].count, 2u);
  EXPECT_EQ(operations[0].errors, 1u);
  EXPECT_EQ(operations[0].p50_ns, 1u);
  EXPECT_EQ(operations[0].p99_ns, 2u);
  EXPECT_EQ(operations[0].p999_ns, 3u);
  EXPECT_EQ(operations[0].max_ns, 4u);
  EXPECT_EQ(operations[1].errors, std::nullopt);
}

TEST(StatDocument, WhatIsMissingOrOfAnotherTypeIsNotKnown) {
  const auto document = StatDocument::parse(
      R"({"pid": 1, "uptime_ns": 0, "engine": {"errors": -1, "syncs": "x", "page_hits": 1}})");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->number("engine", "errors"), std::nullopt);
  EXPECT_EQ(document->number("engine", "syncs"), std::nullopt);
  EXPECT_EQ(document->number("engine", "flushes"), std::nullopt);
  EXPECT_EQ(document->number("space", "free_bytes"), std::nullopt);
  EXPECT_EQ(document->text("label"), "");
  EXPECT_EQ(document->hits(), std::nullopt);
  EXPECT_TRUE(document->history().empty());
  EXPECT_TRUE(document->operations().empty());
  EXPECT_TRUE(document->words("degraded").empty());
}

}  // namespace
}  // namespace kvsyncfs
