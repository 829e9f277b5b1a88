// kvsyncfs-ctl: tells of the cluster that a store is a node of. kvsyncfs-ctl(8).
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "engine/cluster_nodes.h"
#include "engine/cluster_store.h"
#include "engine/env/real.h"
#include "tools/ctl_nodes.h"
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

/// Needs only the store's configuration and etcd, so it works whether the daemon runs or not.
Result<std::string> nodes(Disk& disk, const CtlOptions& options) {
  const auto clock = make_real_clock();
  KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(disk, options.store));
  KVSYNCFS_ASSIGN(const auto found, list_cluster_nodes(disk, *clock, config));
  return options.json ? nodes_json(config, found) : nodes_table(config, found);
}

Result<std::string> run_command(const CtlOptions& options) {
  const auto disk = make_real_disk();
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(*disk, options.store));
  if ((superblock.incompatible & kIncompatibleCluster) == 0)
    return Error(Code::kUnsupported,
                 options.store + ": the store of a lone node, not of a cluster");
  switch (options.command) {
    case CtlCommand::kNodes:
      return nodes(*disk, options);
  }
  return Error(Code::kUnsupported, "the command");
}

int run(std::vector<std::string> arguments) {
  const auto options = parse_ctl_options(std::move(arguments));
  if (!options) {
    fmt::print(stderr, "kvsyncfs-ctl: {}\nTry kvsyncfs-ctl --help.\n", options.error().detail);
    return kUsage;
  }
  if (options->help) return print(ctl_help());
  if (options->version) return print(fmt::format("kvsyncfs-ctl {}\n", KVSYNCFS_VERSION));
  const auto answer = run_command(*options);
  return answer ? print(*answer) : complain(kFailed, answer.error());
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
