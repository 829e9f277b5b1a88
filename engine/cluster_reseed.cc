#include "engine/cluster_reseed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/catalog/snapshot.h"
#include "engine/catalog_folder.h"
#include "engine/cluster/etcd_access.h"
#include "engine/cluster/log_generations.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_store.h"
#include "engine/engine_impl.h"
#include "engine/format/etcd_batch.h"
#include "engine/log/etcd/replay.h"
#include "engine/log_mark_file.h"
#include "engine/node_generation.h"
#include "engine/volume_secrets.h"

namespace kvsyncfs {
namespace {

/// What etcd's log is to the store's catalog.
struct LogTail {
  bool is_other = false;  ///< it was put back, or is of another history
  Position last;          ///< else: of its last entry
};

class Reseed {
 public:
  Reseed(Disk& disk, Clock& clock, Random& random, etcd::EtcdClient& client, std::string store,
         const ReseedOptions& options)
      : disk_(disk),
        clock_(clock),
        random_(random),
        client_(client),
        store_(std::move(store)),
        options_(options) {}

  Result<ReseedReport> run();

 private:
  Status read_store();
  Status read_etcd();
  Result<VolumeRecord> volume_record(VolumeRecordStore& records);
  Status judge_log();
  Result<LogTail> read_log();
  Status note_beginning();
  Status begin();
  /// The log in etcd is the one that was begun.
  Status finish();
  std::uint64_t deadline() { return clock_.boot_ns() + kEtcdTimeoutNs; }

  Disk& disk_;
  Clock& clock_;
  Random& random_;
  etcd::EtcdClient& client_;
  const std::string store_;
  const ReseedOptions options_;

  ClusterConfig config_;
  Superblock superblock_;
  StoreGeneration own_;
  CatalogLook catalog_;
  LogInEtcd log_;
  VolumeRecord volume_;
  ReseedReport report_;
};

Status Reseed::read_store() {
  KVSYNCFS_ASSIGN(superblock_, Engine::superblock(disk_, store_));
  KVSYNCFS_ASSIGN(config_, read_cluster_config(disk_, store_));
  KVSYNCFS_ASSIGN(own_, load_generation(disk_, store_, superblock_));
  KVSYNCFS_ASSIGN(const bool doubted, is_catalog_doubted(disk_, store_));
  if (doubted)
    return Error(Code::kStale, store_ + ": the catalog was found wrong, or was given up");
  CatalogOptions catalog = catalog_options(store_, 0);
  KVSYNCFS_ASSIGN(catalog.directory, catalog_folder(disk_, store_));
  KVSYNCFS_ASSIGN(catalog_, look_at_catalog(disk_, catalog));
  report_.volume = config_.volume;
  report_.node = config_.node;
  report_.position = catalog_.applied;
  report_.generation = generation_count(own_.generation);
  return {};
}

/// As etcd has it, or as this store saw it last.
Result<VolumeRecord> Reseed::volume_record(VolumeRecordStore& records) {
  auto present = records.volume(deadline());
  if (present || present.error().code != Code::kNotFound) return present;
  auto kept = kept_volume_record(disk_, store_);
  if (!kept && kept.error().code == Code::kNotFound)
    return Error(Code::kNotFound, store_ + ": the node was never mounted, there is nothing in it");
  return kept;
}

Status Reseed::read_etcd() {
  LogGenerations logs(client_, clock_, config_.volume);
  if (!options_.is_look) KVSYNCFS_TRY(logs.check_unmounted(deadline()));
  KVSYNCFS_ASSIGN(log_, logs.read(deadline()));
  report_.in_etcd = log_.generation == 0 ? 0 : generation_count(log_.generation);
  VolumeRecordStore records(client_, clock_, config_.volume);
  KVSYNCFS_ASSIGN(volume_, volume_record(records));
  if (volume_.uuid != superblock_.uuid)
    return Error(Code::kExists,
                 fmt::format("etcd has another volume of the name {}", config_.volume));
  const auto secrets = look_at_secrets(disk_, store_, config_, volume_);
  return secrets ? Status{} : Status(secrets.error());
}

Result<LogTail> Reseed::read_log() {
  const etcd::LogKeys keys(config_.volume, log_.generation);
  etcd::ReplayRequest request;
  request.generation = log_.generation;
  request.deadline_ns = [this] { return deadline(); };
  const auto mark = load_log_mark(disk_, store_);
  if (mark && *mark && (*mark)->key.starts_with(keys.batches()))
    request.known = {(*mark)->index, (*mark)->revision, (*mark)->key};
  LogTail tail;
  etcd::ReplayVisitor visitor;
  visitor.begin = [&tail](const etcd::TrimRecord& trim) -> Status {
    tail.last = trim.position;
    return {};
  };
  visitor.batch = [&tail](std::uint64_t, const etcd::KeyValue& batch) -> Status {
    KVSYNCFS_ASSIGN(const auto entries, decode_etcd_batch(batch.value));
    tail.last.value += entries.size();
    return {};
  };
  auto report = etcd::replay(client_, keys, request, visitor);
  while (!report && report.error().code == Code::kBusy)
    report = etcd::replay(client_, keys, request, visitor);
  if (!report && report.error().code != Code::kCorrupt) return report.error();
  tail.is_other = !report || tail.last < catalog_.applied;
  return tail;
}

/// What the new log would lack. Nothing where etcd has nothing, or less than the store.
Status Reseed::judge_log() {
  const auto lose = [this](std::string what) { report_.losses.push_back(std::move(what)); };
  if (log_.generation == own_.generation) {
    KVSYNCFS_ASSIGN(const LogTail tail, read_log());
    if (!tail.is_other)
      lose(
          fmt::format("what the log in etcd has up to position {}, which goes on from this catalog "
                      "(mount the node instead)",
                      tail.last.value));
  } else if (log_.origin) {
    lose(
        fmt::format("what was changed in the log of generation {}, which another node began with "
                    "its catalog at position {}",
                    report_.in_etcd, log_.origin->value));
  }
  for (const auto& [node, position] : log_.durable)
    if (node != config_.node && position > catalog_.applied)
      lose(fmt::format("what node {} has up to position {}", node, position.value));
  return {};
}

Status Reseed::finish() {
  KVSYNCFS_TRY(finish_generation(disk_, store_, own_));
  KVSYNCFS_TRY(keep_volume_record(disk_, store_, volume_));
  report_.is_begun = true;
  report_.in_etcd = report_.generation = generation_count(own_.next);
  return {};
}

/// What an earlier call noted stays as it is: its transaction may still be carried out.
Status Reseed::note_beginning() {
  const std::uint64_t former = std::max(own_.generation, log_.generation);
  const Position newest = std::max(catalog_.applied, log_.base);
  if (own_.next > former && own_.base == generation_base(newest, own_.next)) return {};
  own_.next = generation_after(former, random_.next());
  own_.base = generation_base(newest, own_.next);
  return store_generation(disk_, store_, own_);
}

Status Reseed::begin() {
  KVSYNCFS_TRY(note_beginning());  // a crash from now on goes on with it

  NewLog log;
  log.former = log_.generation;
  log.generation = own_.next;
  log.base = own_.base;
  log.origin = catalog_.applied;
  log.volume = volume_;
  log.node = config_.node;
  log.record = {config_.id, config_.store, config_.rack, clock_.now()};
  log.ids_given = std::max(config_.id, catalog_.greatest_node).value;
  LogGenerations logs(client_, clock_, config_.volume);
  KVSYNCFS_TRY(logs.begin(log, deadline()));
  // What is left of the former one takes room and is in nobody's way.
  if (log_.generation != 0) static_cast<void>(logs.remove_log(log_.generation, deadline()));
  return finish();
}

Result<ReseedReport> Reseed::run() {
  KVSYNCFS_TRY(read_store());
  if (const Status read = read_etcd(); !read) {
    const Code code = read.error().code;
    const bool is_said = code == Code::kBusy || code == Code::kExists || code == Code::kNotFound ||
                         code == Code::kAccess;
    return is_said ? read.error() : with_endpoints(config_, read.error());
  }
  if (own_.next != 0 && own_.next == log_.generation && !options_.is_look) {
    KVSYNCFS_TRY(finish());
    return report_;
  }
  KVSYNCFS_TRY(judge_log());
  if (options_.is_look) return report_;
  if (!report_.losses.empty() && !options_.force)
    return Error(Code::kExists, fmt::format("the new log would not have {}; --force gives that up",
                                            fmt::join(report_.losses, ", ")));
  KVSYNCFS_TRY(begin());
  return report_;
}

}  // namespace

Result<ReseedReport> reseed_log(Disk& disk, Clock& clock, Random& random, etcd::EtcdClient& client,
                                const std::string& store, const ReseedOptions& options) {
  return Reseed(disk, clock, random, client, store, options).run();
}

Result<ReseedReport> reseed_log(Disk& disk, Clock& clock, Random& random, const std::string& store,
                                const ReseedOptions& options) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(disk, store));
  KVSYNCFS_ASSIGN(const auto client, connect_etcd(disk, clock, config));
  return reseed_log(disk, clock, random, *client, store, options);
}

Status give_catalog_up(Disk& disk, const std::string& store) {
  KVSYNCFS_TRY(read_cluster_config(disk, store));
  return doubt_catalog_folder(disk, store);
}

}  // namespace kvsyncfs
