#include "tools/stat_options.h"

#include <gtest/gtest.h>

#include "tools/stat_rates.h"

namespace kvsyncfs {
namespace {

std::string error_of(std::vector<std::string> arguments) {
  const auto options = parse_stat_options(std::move(arguments));
  if (options) return "";
  EXPECT_EQ(options.error().code, Code::kInvalid);
  EXPECT_FALSE(options.error().detail.empty());
  return options.error().detail;
}

TEST(StatOptions, PathAloneAsksForTheTableOnce) {
  const auto options = parse_stat_options({"/mnt/kv"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->path, "/mnt/kv");
  EXPECT_FALSE(options->json || options->hit_rate || options->qp || options->model);
  EXPECT_FALSE(options->watch_ns || options->threshold || options->window_ns);
}

TEST(StatOptions, AllCanBeGivenBeforeOrAfterThePath) {
  const auto options = parse_stat_options({"--json", "--watch", "0.5", "/mnt/kv", "--hit-rate",
                                           "--threshold=95%", "--window=60", "--qp", "--model"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->json && options->hit_rate && options->qp && options->model);
  EXPECT_EQ(options->watch_ns, kSecondNs / 2);
  EXPECT_EQ(options->threshold, 0.95);
  EXPECT_EQ(options->window_ns, 60 * kSecondNs);
}

TEST(StatOptions, HelpAndVersionNeedNoPath) {
  EXPECT_TRUE(parse_stat_options({"--help"})->help);
  EXPECT_TRUE(parse_stat_options({"-h"})->help);
  EXPECT_TRUE(parse_stat_options({"--version"})->version);
  EXPECT_TRUE(parse_stat_options({"-V", "/mnt/kv"})->version);
}

TEST(StatOptions, MistakesAreNamed) {
  EXPECT_NE(error_of({}), "");
  EXPECT_NE(error_of({""}), "");
  EXPECT_NE(error_of({"--json"}), "");
  EXPECT_NE(error_of({"/a", "/b"}).find("/b"), std::string::npos);
  EXPECT_NE(error_of({"/a", "--bogus"}).find("--bogus"), std::string::npos);
  EXPECT_NE(error_of({"/a", "--watch"}).find("--watch"), std::string::npos);
  EXPECT_NE(error_of({"/a", "--watch", "soon"}).find("soon"), std::string::npos);
  EXPECT_NE(error_of({"/a", "--hit-rate", "--window", "0"}).find("--window"), std::string::npos);
  EXPECT_NE(error_of({"/a", "--threshold", "95%"}).find("--hit-rate"), std::string::npos);
  EXPECT_NE(error_of({"/a", "--hit-rate", "--threshold", "101%"}).find("101%"), std::string::npos);
}

TEST(StatOptions, PercentagesAreNeverTakenForShares) {
  EXPECT_EQ(*parse_percent("95%"), 0.95);
  EXPECT_EQ(*parse_percent("95"), 0.95);
  EXPECT_EQ(*parse_percent("99.5%"), 0.995);
  EXPECT_EQ(*parse_percent("0.5%"), 0.005);
  EXPECT_EQ(*parse_percent("0"), 0.0);
  EXPECT_EQ(*parse_percent("100%"), 1.0);
  for (const char* text : {"", "%", "0.95", "1", "-1", "-0", "100.1", "nan", "inf", "1e1", "0x5f",
                           " 95", "95 %", "95%%", "+95"}) {
    EXPECT_FALSE(parse_percent(text)) << text;
  }
}

TEST(StatOptions, SecondsAreDecimalAndBounded) {
  const auto parse = [](const char* text) {
    return parse_seconds(text, kSecondNs / 10, 100 * kSecondNs);
  };
  EXPECT_EQ(*parse("0.1"), kSecondNs / 10);
  EXPECT_EQ(*parse("100"), 100 * kSecondNs);
  for (const char* text : {"", "0", "0.09", "100.1", "-1", "1s", "nan", "inf", "1e300", "1,5"}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

TEST(StatOptions, HelpNamesEveryOption) {
  for (const char* option : {"--json", "--watch", "--hit-rate", "--threshold", "--window", "--qp",
                             "--model", "--help", "--version"}) {
    EXPECT_NE(stat_help().find(option), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace kvsyncfs
