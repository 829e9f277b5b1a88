#include "tools/ctl_store.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "engine/cluster_reseed.h"
#include "engine/env/progress_bar.h"
#include "engine/env/real.h"
#include "engine/env/store_lock.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

/// The positions are for comparing: the node that is furthest has the catalog to begin with.
std::string reseed_text(const ReseedReport& report) {
  std::string text =
      fmt::format("volume {}, node {}: catalog at position {} of log {}, {}\n", report.volume,
                  report.node, report.position.value, report.generation,
                  report.in_etcd == 0 ? std::string("etcd has none")
                                      : fmt::format("etcd has log {}", report.in_etcd));
  if (report.is_begun)
    text = fmt::format(
        "volume {}: log {} begins with the catalog of node {} at position {}; entries behind that "
        "which only etcd had are lost. Mount this node first, then the others.\n",
        report.volume, report.generation, report.node, report.position.value);
  for (const std::string& loss : report.losses)
    text += fmt::format("{}: {}\n", report.is_begun ? "given up" : "would be lost", loss);
  return text;
}

Result<CtlAnswer> reseed(Disk& disk, Clock& clock, const std::string& store,
                         const CtlOptions& options) {
  const auto random = make_real_random();
  KVSYNCFS_ASSIGN(const ReseedReport report,
                  reseed_log(disk, clock, *random, store, {options.dry_run, options.force}));
  if (!options.json) return CtlAnswer{reseed_text(report)};
  return CtlAnswer{json::serialize(json::object{
                       {"volume", report.volume},
                       {"node", report.node},
                       {"position", report.position.value},
                       {"generation", report.generation},
                       {"generation_in_etcd", report.in_etcd},
                       {"begun", report.is_begun},
                       {"losses", json::array(report.losses.begin(), report.losses.end())}}) +
                   "\n"};
}

Result<CtlAnswer> restore(Disk& disk, Clock& clock, const std::string& store,
                          const CtlOptions& options) {
  const auto random = make_real_random();
  ProgressBar bar(clock, stderr, options.json);
  RestoreOptions restore{options.argument, options.dry_run, options.force};
  restore.progress = [&bar](std::uint64_t done, std::uint64_t total) {
    bar.show("restore", done, total);
  };
  const auto report = restore_catalog(disk, clock, *random, store, restore);
  bar.clear();
  if (!report) return report.error();
  if (options.json)
    return CtlAnswer{json::serialize(json::object{
                         {"volume", report->volume},
                         {"node", report->node},
                         {"position", report->position.value},
                         {"begun", report->is_begun},
                         {"lost", json::array(report->lost.begin(), report->lost.end())}}) +
                     "\n"};
  std::string text;
  for (const std::string& path : report->lost)
    text += fmt::format("{}: {}\n", path, report->is_begun ? "has lost bytes" : "would lose bytes");
  if (!report->is_begun)
    return CtlAnswer{text + fmt::format("volume {} can be put back to position {}\n",
                                        report->volume, report->position.value)};
  return CtlAnswer{
      text + fmt::format("volume {} is as it was at position {}. Mount node {} first; the others "
                         "need take-catalog before.\n",
                         report->volume, report->position.value, report->node)};
}

Result<CtlAnswer> take_catalog(Disk& disk, const std::string& store) {
  KVSYNCFS_TRY(give_catalog_up(disk, store));
  return CtlAnswer{store +
                   ": the node takes the catalog of another node when it is mounted next\n"};
}

}  // namespace

Result<CtlAnswer> change_store(Disk& disk, Clock& clock, const std::string& store,
                               const CtlOptions& options) {
  KVSYNCFS_ASSIGN(const StoreLock lock, StoreLock::take(store));
  if (options.command == CtlCommand::kTakeCatalog) return take_catalog(disk, store);
  if (options.command == CtlCommand::kRestoreCatalog) return restore(disk, clock, store, options);
  return reseed(disk, clock, store, options);
}

}  // namespace kvsyncfs
