// Which log a store's catalog follows, and whether it may follow the one that is in etcd now.
// ARCHITECTURE.md, "A log begins anew with one node's catalog". Thread: one; nobody else has the
// store.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/cluster/log_generations.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/format/cluster_config.h"
#include "engine/format/log_generation.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

/// A copy of the volume's record in etcd, for the day when etcd has it no more.
inline constexpr std::string_view kVolumeFile = "volume";

/// Of a store without the file: the first log. Errors: kCorrupt (also: of another volume),
/// kNewerFormat, with the path; those of Disk.
Result<StoreGeneration> load_generation(Disk& disk, const std::string& store,
                                        const Superblock& superblock);
/// Durable when it returns; after an error it is as before or so. Errors: those of Disk.
Status store_generation(Disk& disk, const std::string& store, const StoreGeneration& state);

/// Ends what was begun with state.next, which is the log in etcd: the catalog with which it begins
/// is in use, and at its position, when this returns. May be called again after a crash or an
/// error. Returns what load_generation() tells then. Errors: those of Disk and of move_catalog().
Result<StoreGeneration> finish_generation(Disk& disk, const std::string& store,
                                          const StoreGeneration& state);

struct FollowedLog {
  std::uint64_t generation = kFirstGeneration;
  bool has_catalog = true;  ///< that follows it; else one is to be taken from another node
};
/// What a mount may do: ends what was begun, sees whether the store's catalog follows the log in
/// etcd or may give way to that of a node which does, and puts the node's record into etcd where a
/// beginning has lost it. Errors: kNotFound (no log of the volume), kStale (this catalog
/// has more of the log than the one with which the present log began, or etcd was put back: the
/// store stays as it is), those of load_generation(), finish_generation() and
/// LogGenerations::enlist().
Result<FollowedLog> follow_log(Disk& disk, LogGenerations& logs, const std::string& store,
                               const ClusterConfig& config, const Superblock& superblock,
                               std::uint64_t deadline_ns);

/// Keeps the copy of the record as etcd has it. Errors: those of Disk.
Status keep_volume_record(Disk& disk, const std::string& store, const VolumeRecord& record);
/// Errors: kNotFound (the store was never mounted), those of decode_volume_record(), of Disk.
Result<VolumeRecord> kept_volume_record(Disk& disk, const std::string& store);

}  // namespace kvsyncfs
