#include "engine/cluster_reseed.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
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
#include "engine/saved_catalog.h"
#include "engine/volume_secrets.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kLostPathsTold = 10;

/// What etcd's log is to the store's catalog.
struct LogTail {
  bool is_other = false;  ///< it was put back, or is of another history
  Position last;          ///< else: of its last entry
};

class Reseed {
 public:
  Reseed(Disk& disk, Clock& clock, Random& random, etcd::EtcdClient& client, std::string store,
         const ReseedOptions& options, const RestoreOptions* restore = nullptr)
      : disk_(disk),
        clock_(clock),
        random_(random),
        client_(client),
        store_(std::move(store)),
        options_(options),
        restore_(restore) {}

  Result<ReseedReport> run();

 private:
  Status read_store();
  Status read_etcd();
  Result<VolumeRecord> volume_record(VolumeRecordStore& records);
  Status judge_log();
  /// `visit`, if there is one, takes each entry that is not trimmed.
  using Visit = std::function<Status(Position, std::string_view entry)>;
  Result<LogTail> read_log(const Visit& visit = nullptr);
  Status open_saved();
  Status read_present();
  Status prepare_restore();
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
  const RestoreOptions* const restore_;  ///< nothing: it begins with the store's own catalog

  ClusterConfig config_;
  Superblock superblock_;
  StoreGeneration own_;
  CatalogLook catalog_;
  LogInEtcd log_;
  VolumeRecord volume_;
  std::unique_ptr<SavedCatalogFile> saved_;
  PresentVolume present_;
  std::uint32_t begins_in_ = 0;  ///< folder, as StoreGeneration has it
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

Result<LogTail> Reseed::read_log(const Visit& visit) {
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
  visitor.batch = [&](std::uint64_t, const etcd::KeyValue& batch) -> Status {
    KVSYNCFS_ASSIGN(const auto entries, decode_etcd_batch(batch.value));
    for (const std::string_view entry : entries) {
      ++tail.last.value;
      if (visit) KVSYNCFS_TRY(visit(tail.last, entry));
    }
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

Status Reseed::open_saved() {
  KVSYNCFS_ASSIGN(saved_, SavedCatalogFile::open(disk_, restore_->file));
  if (saved_->header().volume == superblock_.uuid) return {};
  return Error(Code::kInvalid, restore_->file + ": the saved catalog of another volume");
}

/// The rest of the log goes into memory over the store's catalog, which stays as it is.
Status Reseed::read_present() {
  const auto stale = [this](const char* why) {
    return Error(Code::kStale, fmt::format("{}: {}", store_, why));
  };
  if (own_.generation != log_.generation)
    return stale("the catalog follows another log than etcd has: mount the node, or reseed-log");
  CatalogOptions options = catalog_options(store_, 0);
  KVSYNCFS_ASSIGN(options.directory, catalog_folder(disk_, store_));
  options.read_only = true;
  KVSYNCFS_ASSIGN(const auto catalog, Catalog::open(disk_, options));
  const auto apply = [&](Position position, std::string_view entry) -> Status {
    if (position <= catalog->applied()) return {};
    if (position.value != catalog->applied().value + 1) return {};  // told below
    KVSYNCFS_ASSIGN(const Transaction transaction, decode_transaction(entry));
    KVSYNCFS_TRY(catalog->apply(position, transaction));
    return {};
  };
  KVSYNCFS_ASSIGN(const LogTail tail, read_log(apply));
  if (tail.is_other) return stale("the log in etcd is not the one that the catalog follows");
  if (catalog->applied() != tail.last)
    return stale("the log begins behind the catalog: mount the node once, or take another one");
  present_.position = tail.last;
  present_.holds = catalog->holds();
  KVSYNCFS_ASSIGN(const auto segments, catalog->segments());
  present_.segments = {segments.begin(), segments.end()};
  for (const auto& [node, session] : catalog->sessions())
    catalog_.greatest_node = std::max(catalog_.greatest_node, node);
  return {};
}

/// What an earlier call noted may still be carried out, so it is to begin with the catalog in use
/// before the other folder changes.
Status Reseed::prepare_restore() {
  KVSYNCFS_TRY(read_present());
  if (own_.folder != 0) {
    own_.folder = 0;
    KVSYNCFS_TRY(store_generation(disk_, store_, own_));
  }
  KVSYNCFS_ASSIGN(begins_in_, spare_catalog_number(disk_, store_));
  CatalogOptions into = catalog_options(store_, 0);
  KVSYNCFS_ASSIGN(into.directory, spare_catalog_folder(disk_, store_));
  KVSYNCFS_ASSIGN(RestoredCatalog restored,
                  restore_saved_catalog(disk_, *saved_, into, present_, restore_->progress));
  report_.position = restored.position;
  report_.lost = std::move(restored.lost);
  if (restored.lost_files == 0) return {};
  const std::span<const std::string> paths(report_.lost);
  const auto named = paths.first(std::min(paths.size(), kLostPathsTold));
  report_.losses.push_back(fmt::format("bytes of {} files that no segment has any more ({}{})",
                                       restored.lost_files, fmt::join(named, ", "),
                                       named.size() < restored.lost_files ? ", ..." : ""));
  return {};
}

Status Reseed::finish() {
  KVSYNCFS_TRY(finish_generation(disk_, store_, own_));
  KVSYNCFS_TRY(keep_volume_record(disk_, store_, volume_));
  report_.is_begun = true;
  report_.in_etcd = report_.generation = generation_count(own_.next);
  return {};
}

/// What an earlier call noted keeps its number: its transaction may still be carried out, and the
/// note says with which catalog that log begins.
Status Reseed::note_beginning() {
  const std::uint64_t former = std::max(own_.generation, log_.generation);
  const Position newest =
      std::max({catalog_.applied, log_.base, present_.position, report_.position});
  const bool is_noted = own_.next > former && own_.base == generation_base(newest, own_.next);
  if (is_noted && own_.folder == begins_in_) return {};
  if (!is_noted) own_.next = generation_after(former, random_.next());
  own_.base = generation_base(newest, own_.next);
  own_.folder = begins_in_;
  return store_generation(disk_, store_, own_);
}

Status Reseed::begin() {
  KVSYNCFS_TRY(note_beginning());  // a crash from now on goes on with it

  NewLog log;
  log.former = log_.generation;
  log.generation = own_.next;
  log.base = own_.base;
  log.origin = report_.position;
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
  if (restore_ != nullptr) KVSYNCFS_TRY(open_saved());
  if (const Status read = read_etcd(); !read) {
    const Code code = read.error().code;
    const bool is_said = code == Code::kBusy || code == Code::kExists || code == Code::kNotFound ||
                         code == Code::kAccess;
    return is_said ? read.error() : with_endpoints(config_, read.error());
  }
  if (own_.next != 0 && own_.next == log_.generation && !options_.is_look) {
    KVSYNCFS_TRY(finish());
    if (restore_ == nullptr) return report_;
    report_ = {};
    KVSYNCFS_TRY(read_store());
    KVSYNCFS_TRY(read_etcd());
  }
  KVSYNCFS_TRY(restore_ != nullptr ? prepare_restore() : judge_log());
  if (options_.is_look) return report_;
  if (!report_.losses.empty() && !options_.force && restore_ != nullptr)
    return Error(Code::kExists, fmt::format("the volume would not have {}; --force gives that up",
                                            fmt::join(report_.losses, ", ")));
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

Result<ReseedReport> restore_catalog(Disk& disk, Clock& clock, Random& random,
                                     etcd::EtcdClient& client, const std::string& store,
                                     const RestoreOptions& options) {
  const ReseedOptions how{options.is_look, options.force};
  return Reseed(disk, clock, random, client, store, how, &options).run();
}

Result<ReseedReport> restore_catalog(Disk& disk, Clock& clock, Random& random,
                                     const std::string& store, const RestoreOptions& options) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(disk, store));
  KVSYNCFS_ASSIGN(const auto client, connect_etcd(disk, clock, config));
  return restore_catalog(disk, clock, random, *client, store, options);
}

Status give_catalog_up(Disk& disk, const std::string& store) {
  KVSYNCFS_TRY(read_cluster_config(disk, store));
  return doubt_catalog_folder(disk, store);
}

}  // namespace kvsyncfs
