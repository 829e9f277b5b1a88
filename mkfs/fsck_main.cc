// fsck.kvsyncfs: checks a store. Exit status as fsck(8) says.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "engine/env/progress_bar.h"
#include "engine/env/real.h"
#include "mkfs/check_store.h"

namespace kvsyncfs {
namespace {

int fail(const Error& error, int status) {
  fmt::print(stderr, "fsck.kvsyncfs: {}\n", describe(error));
  return status;
}

void print_json(const FsckResult& result) {
  fmt::print(
      "{{\"problems\": {}, \"left\": {}, \"pages_checked\": {}, \"bad_pages\": {}, "
      "\"is_node\": {}, \"status\": {}}}\n",
      result.problems, result.left, result.pages_checked, result.bad_pages, result.is_node,
      static_cast<int>(result.status()));
}

void print_text(const FsckOptions& options, const FsckResult& result) {
  if (result.problems == 0) {
    if (!options.quiet) fmt::print("{}: clean", options.store);
  } else {
    fmt::print("{}: {} problem{}, {} left", options.store, result.problems,
               result.problems == 1 ? "" : "s", result.left);
  }
  if (options.scrub && !(options.quiet && result.problems == 0))
    fmt::print(", {} pages verified, {} bad", result.pages_checked, result.bad_pages);
  if (result.is_node && !options.quiet)
    fmt::print(", as its own disk has it: the log in etcd may have more");
  if (result.problems != 0 || !options.quiet) fmt::print("\n");
}

int run(const FsckOptions& options) {
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  const auto random = make_real_random();
  ProgressBar bar(*clock, stderr, options.quiet);
  FsckObserver observer;
  observer.report = [&](std::string_view problem) {
    bar.clear();
    fmt::print(stderr, "{}\n", problem);
  };
  observer.progress = [&](std::string_view phase, std::uint64_t done, std::uint64_t total) {
    bar.show(phase, done, total);
  };
  const auto result = check_store({*disk, *clock, *random}, options, observer);
  bar.clear();
  if (!result)
    return fail(result.error(), result.error().code == Code::kCorrupt ? kFsckLeft : kFsckFailed);
  options.json ? print_json(*result) : print_text(options, *result);
  return result->status();
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) try {
  using namespace kvsyncfs;
  const auto options = parse_fsck_options({argv + 1, argv + argc});
  if (!options) {
    fmt::print(stderr, "fsck.kvsyncfs: {} (see fsck.kvsyncfs --help)\n", describe(options.error()));
    return kFsckUsage;
  }
  if (options->help) {
    fmt::print("{}", fsck_help());
    return 0;
  }
  if (options->version) {
    fmt::print("fsck.kvsyncfs {}\n", KVSYNCFS_VERSION);
    return 0;
  }
  return run(*options);
} catch (const std::exception& error) {
  return kvsyncfs::fail({kvsyncfs::Code::kNoMemory, error.what()}, kvsyncfs::kFsckFailed);
}
