#include "tools/ctl_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "engine/cluster_nodes.h"
#include "engine/cluster_orders.h"
#include "engine/cluster_store.h"
#include "engine/engine.h"
#include "engine/env/progress_bar.h"
#include "tools/ctl_copies.h"
#include "tools/ctl_daemon.h"
#include "tools/ctl_locate.h"
#include "tools/ctl_nodes.h"
#include "tools/ctl_secret.h"
#include "tools/ctl_snapshot.h"
#include "tools/ctl_store.h"
#include "tools/ctl_table.h"
#include "tools/stat_units.h"

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

/// What is left on nodes that are drained, if this node's daemon can tell.
SegmentsLeft segments_left(const CtlOptions& options, const std::vector<ClusterNode>& nodes) {
  SegmentsLeft left;
  const bool is_any = std::any_of(nodes.begin(), nodes.end(),
                                  [](const ClusterNode& node) { return node.is_draining; });
  if (!is_any) return left;
  const auto daemon = CtlDaemon::of(options.store);
  const auto report = daemon ? daemon->ask({{"do", "heal"}}) : Result<json::object>(daemon.error());
  if (!report) return left;
  for (const json::object* node : objects_in(*report, "leaving")) {
    const json::value* share = node->if_contains("left");
    if (share != nullptr && share->is_object())
      left[NodeId{number_in(*node, "id")}] = number_in(share->get_object(), "segments");
  }
  return left;
}

Result<CtlAnswer> nodes(Disk& disk, Clock& clock, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, cluster_of(disk, options));
  KVSYNCFS_ASSIGN(const auto found, list_cluster_nodes(disk, clock, config));
  const SegmentsLeft left = segments_left(options, found);
  return CtlAnswer{options.json ? nodes_json(config, found, left)
                                : nodes_table(config, found, left)};
}

/// One that is not there, or the only one, is refused by the removal itself. The catalog of a store
/// that is not mounted may be old, so only a daemon is asked.
Status check_last_copies(Disk& disk, Clock& clock, const ClusterConfig& config,
                         const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const auto nodes, list_cluster_nodes(disk, clock, config));
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const ClusterNode& each) {
    return each.name == options.argument;
  });
  if (node == nodes.end() || nodes.size() == 1) return {};
  if (node->member)
    return Error(Code::kBusy, fmt::format("node {} of volume {} is up, or was some seconds ago",
                                          node->name, config.volume));
  const auto daemon = CtlDaemon::of(options.store);
  const auto answer = daemon ? daemon->ask({{"do", "last_copies"}, {"node", node->record.id.value}})
                             : Result<json::object>(daemon.error());
  if (!answer)
    return Error(answer.error().code,
                 fmt::format("what only node {} has is not known; --force removes it without that "
                             "look: {}",
                             node->name, answer.error().detail));
  const std::string last = last_copies_text(node->name, *answer);
  return last.empty() ? Status{} : Error(Code::kBusy, last);
}

Result<CtlAnswer> remove(Disk& disk, Clock& clock, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, cluster_of(disk, options));
  if (!options.force) KVSYNCFS_TRY(check_last_copies(disk, clock, config, options));
  KVSYNCFS_TRY(remove_cluster_node(disk, clock, config, options.argument));
  if (options.json)
    return CtlAnswer{
        json::serialize(json::object{{"volume", config.volume}, {"removed", options.argument}}) +
        "\n"};
  return CtlAnswer{"node " + options.argument + " is removed from volume " + config.volume + "\n"};
}

Result<CtlAnswer> order(Disk& disk, Clock& clock, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, cluster_of(disk, options));
  NodeOrder order = options.cancel ? NodeOrder::kEndDrain : NodeOrder::kDrain;
  if (options.command == CtlCommand::kMaintenance)
    order = options.cancel ? NodeOrder::kEndMaintenance : NodeOrder::kMaintenance;
  if (options.command == CtlCommand::kEvict)
    order = options.cancel ? NodeOrder::kEndEviction : NodeOrder::kEvict;
  KVSYNCFS_TRY(give_order(disk, clock, config, options.argument, order, options.seconds));
  return CtlAnswer{};
}

std::string document(json::object answer) {
  answer.erase("ok");
  return json::serialize(answer) + "\n";
}

Result<CtlAnswer> locate(const CtlDaemon& daemon, const CtlOptions& options) {
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
  location.erase("next");
  if (!options.json) return CtlAnswer{location_table(path, location)};
  location["path"] = "/" + path;
  return CtlAnswer{document(std::move(location))};
}

/// Adds what one step found to what was found before.
void gather(json::object& all, const json::object& step, const char* list) {
  if (!all.contains(list)) all[list] = json::array();
  json::array& gathered = all[list].as_array();
  for (const json::value& value : list_in(step, list))
    if (std::find(gathered.begin(), gathered.end(), value) == gathered.end())
      gathered.push_back(value);
}

CtlAnswer copies_answer(const CtlOptions& options, json::object all) {
  const bool is_good = left_bad(all) == 0;
  std::string text = options.json ? document(all) : bad_copies_text(all);
  if (!options.json && !list_in(all, "unchecked").empty()) {
    const NodeNames names(all);
    for (const json::value& node : list_in(all, "unchecked"))
      if (node.is_int64())
        text += names.of(static_cast<std::uint64_t>(node.get_int64())) + ": not checked\n";
  }
  return {std::move(text), is_good};
}

Result<CtlAnswer> verify(const CtlDaemon& daemon, Clock& clock, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const std::string path, daemon.path_in_volume(options.argument));
  ProgressBar bar(clock, stderr, options.json);
  json::object all{{"path", "/" + path}};
  std::uint64_t offset = 0;
  do {
    KVSYNCFS_ASSIGN(const json::object step,
                    daemon.ask({{"do", "verify"}, {"path", path}, {"offset", offset}}));
    for (const char* list : {"bad", "unchecked", "nodes"}) gather(all, step, list);
    all["size_bytes"] = number_in(step, "size_bytes");
    offset = number_in(step, "next");
    bar.show("verify", offset, number_in(step, "size_bytes"));
  } while (offset != 0);
  return copies_answer(options, std::move(all));
}

Result<CtlAnswer> scrub(const CtlDaemon& daemon, Clock& clock, const CtlOptions& options) {
  ProgressBar bar(clock, stderr, options.json);
  json::object all;
  std::uint64_t segment = 0, page = 0;
  do {
    KVSYNCFS_ASSIGN(const json::object step,
                    daemon.ask({{"do", "scrub"}, {"segment", segment}, {"page", page}}));
    for (const char* list : {"bad", "nodes"}) gather(all, step, list);
    segment = number_in(step, "segment");
    page = number_in(step, "page");
    all["checked_bytes"] = number_in(step, "done_bytes");
    bar.show("scrub", number_in(step, "done_bytes"), number_in(step, "total_bytes"));
  } while (segment != 0);
  return copies_answer(options, std::move(all));
}

Result<CtlAnswer> pull(const CtlDaemon& daemon, Clock& clock, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const std::string path, daemon.path_in_volume(options.argument));
  ProgressBar bar(clock, stderr, options.json);
  std::uint64_t offset = 0, pulled = 0, size = 0, memory = 0;
  do {
    KVSYNCFS_ASSIGN(const json::object step,
                    daemon.ask({{"do", "warm"}, {"path", path}, {"offset", offset}}));
    pulled += number_in(step, "pulled_bytes");
    size = number_in(step, "size_bytes");
    memory = number_in(step, "memory_bytes");
    offset = number_in(step, "next");
    bar.show("pull", offset == 0 ? size : offset, size);
  } while (offset != 0 && offset < memory);
  bar.clear();
  if (options.json)
    return CtlAnswer{document({{"path", "/" + path},
                               {"size_bytes", size},
                               {"pulled_bytes", pulled},
                               {"is_whole", offset == 0}})};
  if (offset == 0) return CtlAnswer{};
  return Error(Code::kNoMemory, fmt::format("/{}: the first {} of it fill this node's memory for "
                                            "pages (-o cache_size=)",
                                            path, human_bytes(offset)));
}

/// Two looks tell how fast it goes, of all nodes together.
Result<CtlAnswer> heal(const CtlDaemon& daemon, Clock& clock, const CtlOptions& options) {
  if (options.rate_bytes > 0)
    KVSYNCFS_TRY(daemon.ask({{"do", "heal_rate"}, {"bytes", options.rate_bytes}}));
  if (options.now) KVSYNCFS_TRY(daemon.ask({{"do", "heal_now"}}));
  KVSYNCFS_ASSIGN(json::object report, daemon.ask({{"do", "heal"}}));
  if (options.json) return CtlAnswer{document(std::move(report))};
  const std::uint64_t left = heal_bytes_left(report);
  if (left == 0) return CtlAnswer{heal_text(report, 0)};
  const std::uint64_t begun_ns = clock.boot_ns();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  KVSYNCFS_ASSIGN(report, daemon.ask({{"do", "heal"}}));
  const std::uint64_t now_left = heal_bytes_left(report);
  const double seconds = static_cast<double>(clock.boot_ns() - begun_ns) / 1e9;
  return CtlAnswer{
      heal_text(report, now_left < left ? static_cast<double>(left - now_left) / seconds : 0)};
}

Result<CtlAnswer> lost(const CtlDaemon& daemon, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(json::object answer, daemon.ask({{"do", "lost"}}));
  return CtlAnswer{options.json ? document(std::move(answer)) : lost_text(answer)};
}

Result<CtlAnswer> ask_daemon_of(Disk& disk, Clock& clock, const CtlDaemon& daemon,
                                const CtlOptions& options) {
  switch (options.command) {
    case CtlCommand::kFlush:
      KVSYNCFS_TRY(daemon.flush());
      return CtlAnswer{};
    case CtlCommand::kLocate:
      return locate(daemon, options);
    case CtlCommand::kVerify:
      return verify(daemon, clock, options);
    case CtlCommand::kPull:
      return pull(daemon, clock, options);
    case CtlCommand::kScrub:
      return scrub(daemon, clock, options);
    case CtlCommand::kHeal:
      return heal(daemon, clock, options);
    case CtlCommand::kLost:
      return lost(daemon, options);
    case CtlCommand::kSnapshotCatalog:
      return snapshot_catalog(disk, clock, daemon, options);
    case CtlCommand::kSnapshots:
      return list_snapshots(daemon, options);
    case CtlCommand::kReleaseSnapshot:
      return release_snapshot(daemon, options);
    default:
      return Error(Code::kUnsupported, "the command");
  }
}

}  // namespace

Result<CtlAnswer> run_ctl(Disk& disk, Clock& clock, const CtlOptions& options) {
  switch (options.command) {
    case CtlCommand::kNodes:
      return nodes(disk, clock, options);
    case CtlCommand::kRemove:
      return remove(disk, clock, options);
    case CtlCommand::kDrain:
    case CtlCommand::kEvict:
    case CtlCommand::kMaintenance:
      return order(disk, clock, options);
    case CtlCommand::kRotateSecret: {
      KVSYNCFS_ASSIGN(const std::string store, store_of(options));
      KVSYNCFS_TRY(cluster_of(disk, options));
      return rotate_secret(disk, clock, store, options);
    }
    case CtlCommand::kReseedLog:
    case CtlCommand::kTakeCatalog:
    case CtlCommand::kRestoreCatalog: {
      KVSYNCFS_ASSIGN(const std::string store, store_of(options));
      KVSYNCFS_TRY(cluster_of(disk, options));
      return change_store(disk, clock, store, options);
    }
    default: {
      KVSYNCFS_ASSIGN(const CtlDaemon daemon, CtlDaemon::of(options.store));
      return ask_daemon_of(disk, clock, daemon, options);
    }
  }
}

}  // namespace kvsyncfs
