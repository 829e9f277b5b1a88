#include "tools/ctl_commands.h"

#include <utility>

#include "engine/cluster_nodes.h"
#include "engine/cluster_store.h"
#include "engine/engine.h"
#include "tools/ctl_daemon.h"
#include "tools/ctl_locate.h"
#include "tools/ctl_nodes.h"
#include "tools/ctl_table.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

/// The store that is named, or that the mount which is named is of.
Result<std::string> store_of(const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const ResolvedPath found, resolve(options.store));
  return found.mount ? found.mount->source : options.store;
}

/// Needs only the store's configuration and etcd, so it works whether the daemon runs or not.
Result<ClusterConfig> cluster_of(Disk& disk, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const std::string store, store_of(options));
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(disk, store));
  if ((superblock.incompatible & kIncompatibleCluster) == 0)
    return Error(Code::kUnsupported, store + ": the store of a lone node, not of a cluster");
  return read_cluster_config(disk, store);
}

Result<std::string> nodes(Disk& disk, Clock& clock, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, cluster_of(disk, options));
  KVSYNCFS_ASSIGN(const auto found, list_cluster_nodes(disk, clock, config));
  return options.json ? nodes_json(config, found) : nodes_table(config, found);
}

Result<std::string> remove(Disk& disk, Clock& clock, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, cluster_of(disk, options));
  KVSYNCFS_TRY(remove_cluster_node(disk, clock, config, options.argument));
  if (options.json)
    return json::serialize(json::object{{"volume", config.volume}, {"removed", options.argument}}) +
           "\n";
  return "node " + options.argument + " is removed from volume " + config.volume + "\n";
}

Result<std::string> flush(const CtlDaemon& daemon) {
  KVSYNCFS_TRY(daemon.flush());
  return std::string();
}

Result<std::string> locate(const CtlDaemon& daemon, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const std::string path, daemon.path_in_volume(options.argument));
  json::object location;
  json::array extents;
  std::uint64_t offset = 0;
  do {
    KVSYNCFS_ASSIGN(json::object part,
                    daemon.ask({{"do", "locate"}, {"path", path}, {"offset", offset}}));
    for (const json::value& extent : list_in(part, "extents")) extents.push_back(extent);
    offset = number_in(part, "next");
    location = std::move(part);
  } while (offset != 0);
  location["extents"] = std::move(extents);
  for (const char* word : {"ok", "next"}) location.erase(word);
  if (!options.json) return location_table(path, location);
  location["path"] = "/" + path;
  return json::serialize(location) + "\n";
}

}  // namespace

Result<std::string> run_ctl(Disk& disk, Clock& clock, const CtlOptions& options) {
  if (options.command == CtlCommand::kNodes) return nodes(disk, clock, options);
  if (options.command == CtlCommand::kRemove) return remove(disk, clock, options);
  KVSYNCFS_ASSIGN(const CtlDaemon daemon, CtlDaemon::of(options.store));
  switch (options.command) {
    case CtlCommand::kFlush:
      return flush(daemon);
    case CtlCommand::kLocate:
      return locate(daemon, options);
    case CtlCommand::kNodes:
    case CtlCommand::kRemove:
      break;
  }
  return Error(Code::kUnsupported, "the command");
}

}  // namespace kvsyncfs
