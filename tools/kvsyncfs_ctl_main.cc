// kvsyncfs-ctl: looks after a node and its cluster. kvsyncfs-ctl(8).
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "engine/env/real.h"
#include "tools/ctl_commands.h"
#include "tools/ctl_options.h"

namespace kvsyncfs {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

int complain(ExitCode status, const Error& error) {
  fmt::print(stderr, "kvsyncfs-ctl: {}\n", describe(error));
  return status;
}

int print(const std::string& text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (is_written && std::fflush(stdout) == 0) return kDone;
  return complain(kFailed, Error(from_errno(errno), "write to standard output"));
}

int run(std::vector<std::string> arguments) {
  const auto options = parse_ctl_options(std::move(arguments));
  if (!options) {
    fmt::print(stderr, "kvsyncfs-ctl: {}\nTry kvsyncfs-ctl --help.\n", options.error().detail);
    return kUsage;
  }
  if (options->help) return print(ctl_help());
  if (options->version) return print(fmt::format("kvsyncfs-ctl {}\n", KVSYNCFS_VERSION));
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  const auto answer = run_ctl(*disk, *clock, *options);
  if (!answer) return complain(kFailed, answer.error());
  const int printed = print(answer->text);
  return answer->is_good ? printed : kFailed;
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) {
  try {
    return kvsyncfs::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    return kvsyncfs::complain(kvsyncfs::kFailed, {kvsyncfs::Code::kNoMemory, error.what()});
  }
}
