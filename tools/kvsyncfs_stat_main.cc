// kvsyncfs-stat: shows what the daemon of a mounted store counts. kvsyncfs-stat(8).
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>

#include "tools/stat_client.h"
#include "tools/stat_fetch.h"
#include "tools/stat_options.h"
#include "tools/stat_table.h"
#include "tools/stat_target.h"

namespace kvsyncfs {
namespace {

enum ExitCode { kDone = 0, kThresholdMissed = 1, kUsage = 2, kNoAnswer = 3 };

int complain(ExitCode status, const Error& error) {
  fmt::print(stderr, "kvsyncfs-stat: {}\n", describe(error));
  return status;
}

/// Everything at once, so that a reader of a pipe never sees half an answer wait for the next.
Status print(const std::string& text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (is_written && std::fflush(stdout) == 0) return {};
  return Error(from_errno(errno), "write to standard output");
}

std::string render(const Report& report, bool is_first) {
  if (report.options.json) return to_json(report);
  const bool is_line = report.options.hit_rate || report.options.qp || report.options.model;
  if (!report.options.watch_ns || is_line) return to_table(report);
  const bool is_screen = ::isatty(STDOUT_FILENO) == 1;
  const std::string_view clear = is_screen ? "\033[H\033[2J" : is_first ? "" : "\n";
  return std::string(clear) + to_table(report);
}

int once(const Target& target, const StatOptions& options) {
  const auto document = fetch(target);
  if (!document) return complain(kNoAnswer, document.error());
  const Report report{nullptr, *document, options};
  if (auto printed = print(render(report, true)); !printed) {
    return complain(kNoAnswer, printed.error());
  }
  return is_threshold_met(report) ? kDone : kThresholdMissed;
}

/// Until SIGINT or SIGTERM, or the end of the daemon. The exit code is that of the last answer.
int watch(const Target& target, const StatOptions& options) {
  const Interrupt interrupt;
  std::optional<StatDocument> before;
  int status = kDone;
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    auto document = fetch(target, kStatTimeoutMs, interrupt.fd());
    if (!document && document.error().code == Code::kShutdown) return status;
    if (!document) return complain(kNoAnswer, document.error());
    const Report report{before ? &*before : nullptr, *document, options};
    if (auto printed = print(render(report, !before)); !printed) {
      return complain(kNoAnswer, printed.error());
    }
    status = is_threshold_met(report) ? kDone : kThresholdMissed;
    before = std::move(*document);
    next += std::chrono::nanoseconds(*options.watch_ns);
    const auto now = std::chrono::steady_clock::now();
    if (next < now) next = now;  // a slow answer delays, it does not cause a burst
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(next - now);
    if (interrupt.wait(pause.count())) return status;
  }
}

int run(std::vector<std::string> arguments) {
  const auto options = parse_stat_options(std::move(arguments));
  if (!options) {
    fmt::print(stderr, "kvsyncfs-stat: {}\nTry kvsyncfs-stat --help.\n", options.error().detail);
    return kUsage;
  }
  if (options->help || options->version) {
    const std::string version = fmt::format("kvsyncfs-stat {}\n", KVSYNCFS_VERSION);
    const auto printed = print(options->help ? stat_help() : version);
    return printed ? kDone : complain(kNoAnswer, printed.error());
  }
  const auto target = find_target(options->path);
  if (!target) return complain(kNoAnswer, target.error());
  return options->watch_ns ? watch(*target, *options) : once(*target, *options);
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) {
  try {
    return kvsyncfs::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    return kvsyncfs::complain(kvsyncfs::kNoAnswer, {kvsyncfs::Code::kNoMemory, error.what()});
  }
}
