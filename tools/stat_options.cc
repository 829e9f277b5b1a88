#include "tools/stat_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "tools/stat_rates.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kWatchMinNs = kSecondNs / 10;
constexpr std::uint64_t kWatchMaxNs = 86400 * kSecondNs;

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

struct Words {
  std::string watch, threshold, window;
};

void declare(CLI::App& app, StatOptions& options, Words& words) {
  app.set_help_flag();
  app.add_flag("-h,--help", options.help);
  app.add_flag("-V,--version", options.version);
  app.add_flag("--json", options.json);
  app.add_option("--watch", words.watch);
  app.add_flag("--hit-rate", options.hit_rate);
  app.add_option("--threshold", words.threshold);
  app.add_option("--window", words.window);
  app.add_flag("--qp", options.qp);
  app.add_flag("--model", options.model);
  app.add_option("PATH", options.path);
}

Error named(std::string_view option, const Error& error) {
  return {error.code, fmt::format("{} {}", option, error.detail)};
}

}  // namespace

Result<double> parse_percent(std::string_view text) {
  const bool has_sign = text.ends_with('%');
  const auto value = parse_decimal(has_sign ? text.substr(0, text.size() - 1) : text);
  if (!value || std::signbit(*value) || *value > 100) {
    return Error(Code::kInvalid, fmt::format("{}: not a percentage from 0% to 100%", text));
  }
  if (!has_sign && *value > 0 && *value <= 1) {
    return Error(Code::kInvalid, fmt::format("{}: say {}% or {}%", text, text, *value * 100));
  }
  return *value / 100;
}

Result<std::uint64_t> parse_seconds(std::string_view text, std::uint64_t min_ns,
                                    std::uint64_t max_ns) {
  const auto value = parse_decimal(text);
  const double ns = value.value_or(-1) * static_cast<double>(kSecondNs);
  if (!(ns >= static_cast<double>(min_ns) && ns <= static_cast<double>(max_ns))) {
    return Error(Code::kInvalid,
                 fmt::format("{}: not seconds from {} to {}", text,
                             static_cast<double>(min_ns) / static_cast<double>(kSecondNs),
                             max_ns / kSecondNs));
  }
  return static_cast<std::uint64_t>(ns);
}

Result<StatOptions> parse_stat_options(std::vector<std::string> arguments) {
  StatOptions options;
  Words words;
  CLI::App app;
  declare(app, options, words);
  try {
    std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return Error(Code::kInvalid, error.what());
  }
  if (options.help || options.version) return options;
  if (options.path.empty()) return Error(Code::kInvalid, "no mount and no store is named");
  if (app.count("--watch") > 0) {
    const auto watch = parse_seconds(words.watch, kWatchMinNs, kWatchMaxNs);
    if (!watch) return named("--watch", watch.error());
    options.watch_ns = *watch;
  }
  if (app.count("--window") > 0) {
    const auto window = parse_seconds(words.window, kSecondNs, kWindowMaxNs);
    if (!window) return named("--window", window.error());
    options.window_ns = *window;
  }
  if (app.count("--threshold") > 0) {
    const auto threshold = parse_percent(words.threshold);
    if (!threshold) return named("--threshold", threshold.error());
    options.threshold = *threshold;
    if (!options.hit_rate) return Error(Code::kInvalid, "--threshold needs --hit-rate");
  }
  return options;
}

std::string stat_help() {
  return R"(usage: kvsyncfs-stat MNT|STORE [OPTION]...

Shows what the daemon of a mounted kvsyncfs store counts: operations and their latencies, bytes,
hit rate, write buffer, log, cleaner, space and errors.

  --json                  one JSON document instead of a table
  --watch SECONDS         again every SECONDS, with the rates of the interval
  --hit-rate              only the share of page reads that memory served
    --threshold PERCENT   exit with 1 if it is below, for monitoring (95%)
  --window SECONDS        how far the hit rate looks back (1 to 300; default 300)
  --qp                    state of the RDMA queue pairs
  --model                 state of the learned models
  -h, --help              this text
  -V, --version           the version

Exit status: 0 done; 1 hit rate below the threshold; 2 wrong usage; 3 no daemon, or no answer.
)";
}

}  // namespace kvsyncfs
