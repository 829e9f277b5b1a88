// mkfs.kvsyncfs: makes a store. Exit status: 0 made, 1 failed, 2 usage.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "engine/env/progress_bar.h"
#include "engine/env/real.h"
#include "mkfs/cluster_node.h"
#include "mkfs/make_store.h"

namespace kvsyncfs {
namespace {

constexpr int kFailed = 1, kUsage = 2;

int fail(const Error& error) {
  fmt::print(stderr, "mkfs.kvsyncfs: {}\n", describe(error));
  return kFailed;
}

/// What only a node of a cluster has.
int print_node(Disk& disk, const MkfsOptions& options) {
  const auto config = read_cluster_config(disk, options.store);
  if (!config) return fail(config.error());
  fmt::print("node {}, number {} of volume {}, at {}\n", config->node, config->id.value,
             config->volume, config->listen);
  fmt::print("{}/{} is the volume's secret. With a copy of it in FILE, the next node is made by\n",
             options.store, kSecretFile);
  fmt::print("  {}\n", next_node_command(*options.cluster));
  return 0;
}

int run(MkfsOptions options) {
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  const auto random = make_real_random();
  if (options.cluster) {
    const Status complete = complete_cluster(*disk, *options.cluster);
    if (!complete) return fail(complete.error());
  }
  ProgressBar bar(*clock, stderr, options.quiet);
  const Result<Superblock> made =
      make_store({*disk, *clock, *random}, options, [&](std::uint64_t done, std::uint64_t total) {
        bar.show("format " + options.store, done, total);
      });
  bar.clear();
  if (!made) return fail(made.error());
  if (options.quiet) return 0;
  fmt::print("{}: kvsyncfs store of {}, UUID {}", options.store, size_for_people(made->size_bytes),
             made->uuid_text());
  if (!made->label.empty()) fmt::print(", label '{}'", made->label);
  fmt::print("\n");
  return options.cluster ? print_node(*disk, options) : 0;
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) try {
  using namespace kvsyncfs;
  const auto options = parse_mkfs_options({argv + 1, argv + argc});
  if (!options) {
    fmt::print(stderr, "mkfs.kvsyncfs: {} (see mkfs.kvsyncfs --help)\n", describe(options.error()));
    return kUsage;
  }
  if (options->help) {
    fmt::print("{}", mkfs_help());
    return 0;
  }
  if (options->version) {
    fmt::print("mkfs.kvsyncfs {}\n", KVSYNCFS_VERSION);
    return 0;
  }
  return run(*options);
} catch (const std::exception& error) {
  return kvsyncfs::fail({kvsyncfs::Code::kNoMemory, error.what()});
}
