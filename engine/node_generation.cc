#include "engine/node_generation.h"

#include <fmt/format.h>

#include "engine/catalog/snapshot.h"
#include "engine/catalog_folder.h"
#include "engine/cluster/etcd_access.h"
#include "engine/engine_impl.h"

namespace kvsyncfs {
namespace {

std::string path_of(const std::string& store, std::string_view name) {
  return store + "/" + std::string(name);
}

Result<CatalogOptions> catalog_in_use(Disk& disk, const std::string& store) {
  CatalogOptions options = catalog_options(store, 0);
  KVSYNCFS_ASSIGN(options.directory, catalog_folder(disk, store));
  return options;
}

/// The catalog stays as it is until whoever runs the volume says otherwise.
Error keeps_to_itself(const std::string& store, const ClusterConfig& config, Position applied,
                      const LogInEtcd& log) {
  if (!log.origin)
    return Error(Code::kStale,
                 fmt::format("{}: the catalog follows a later log of volume {} than etcd has: etcd "
                             "went back; kvsyncfs-ctl {} reseed-log begins a new one",
                             store, config.volume, store));
  return Error(
      Code::kStale,
      fmt::format("{}: the log of volume {} began anew with a catalog at position {}, the one here "
                  "has its log up to {}, and what is between is nowhere else; kvsyncfs-ctl {} "
                  "take-catalog gives it up, reseed-log makes it the volume's instead",
                  store, config.volume, log.origin->value, applied.value, store));
}

}  // namespace

Result<StoreGeneration> load_generation(Disk& disk, const std::string& store,
                                        const Superblock& superblock) {
  const std::string path = path_of(store, kGenerationFile);
  StoreGeneration first;
  first.volume_tag = superblock.volume_tag();
  const auto bytes = read_small_file(disk, path, kGenerationFileSize);
  if (!bytes && bytes.error().code == Code::kNotFound) return first;
  if (!bytes) return bytes.error();
  auto state = decode_store_generation(*bytes);
  if (!state) return Error(state.error().code, path + ": " + state.error().detail);
  if (state->volume_tag != first.volume_tag)
    return Error(Code::kCorrupt, path + ": of another volume");
  return state;
}

Status store_generation(Disk& disk, const std::string& store, const StoreGeneration& state) {
  return replace_small_file(disk, store, kGenerationFile, encode(state));
}

/// The position tells how far an earlier call came.
Result<StoreGeneration> finish_generation(Disk& disk, const std::string& store,
                                          const StoreGeneration& state) {
  if (state.folder != 0) KVSYNCFS_TRY(use_catalog_folder(disk, store, state.folder));
  KVSYNCFS_ASSIGN(const CatalogOptions own, catalog_in_use(disk, store));
  KVSYNCFS_ASSIGN(const CatalogLook look, look_at_catalog(disk, own));
  if (look.applied != state.base) KVSYNCFS_TRY(move_catalog(disk, own, state.base));
  StoreGeneration done;
  done.volume_tag = state.volume_tag;
  done.generation = state.next;
  KVSYNCFS_TRY(store_generation(disk, store, done));
  return done;
}

Result<FollowedLog> follow_log(Disk& disk, LogGenerations& logs, const std::string& store,
                               const ClusterConfig& config, const Superblock& superblock,
                               std::uint64_t deadline_ns) {
  KVSYNCFS_ASSIGN(const LogInEtcd log, logs.read(deadline_ns));
  if (log.generation == 0)
    return Error(Code::kNotFound, fmt::format("log of volume {} in etcd", config.volume));
  KVSYNCFS_ASSIGN(StoreGeneration own, load_generation(disk, store, superblock));
  if (own.next != 0 && own.next == log.generation) {
    KVSYNCFS_ASSIGN(own, finish_generation(disk, store, own));
  }
  if (own.generation == log.generation) return FollowedLog{log.generation, true};
  KVSYNCFS_ASSIGN(const bool doubted, is_catalog_doubted(disk, store));
  if (!doubted) {
    KVSYNCFS_ASSIGN(const CatalogOptions options, catalog_in_use(disk, store));
    KVSYNCFS_ASSIGN(const CatalogLook look, look_at_catalog(disk, options));
    if (!log.origin || look.applied > *log.origin)
      return keeps_to_itself(store, config, look.applied, log);
  }
  KVSYNCFS_TRY(logs.enlist(config, log.generation, deadline_ns));
  return FollowedLog{log.generation, false};
}

Status keep_volume_record(Disk& disk, const std::string& store, const VolumeRecord& record) {
  const std::string text = encode(record);
  const auto kept = read_small_file(disk, path_of(store, kVolumeFile), kClusterTextMax);
  if (kept && *kept == text) return {};
  return replace_small_file(disk, store, kVolumeFile, text);
}

Result<VolumeRecord> kept_volume_record(Disk& disk, const std::string& store) {
  const std::string path = path_of(store, kVolumeFile);
  KVSYNCFS_ASSIGN(const std::string text, read_small_file(disk, path, kClusterTextMax));
  auto record = decode_volume_record(text);
  if (!record) return Error(record.error().code, path + ": " + record.error().detail);
  return record;
}

}  // namespace kvsyncfs
