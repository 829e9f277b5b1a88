// A volume whose etcd lost its data, or was put back to an older state, gets a new log that begins
// with the catalog of one node. ARCHITECTURE.md, "A log begins anew with one node's catalog".
//
// Nothing changes before etcd's one transaction, which either happens or not. A store that dies
// behind it comes to its end with the next call or mount. Thread: one; the caller has the store's
// lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/env/random.h"

namespace kvsyncfs {

namespace etcd {
class EtcdClient;
}

struct ReseedOptions {
  bool is_look = false;  ///< changes nothing
  bool force = false;    ///< what the report names may be lost
};

/// The volume is put back to a catalog that was saved.
struct RestoreOptions {
  std::string file;  ///< a saved catalog
  bool is_look = false, force = false;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = [](auto, auto) {};
};

struct ReseedReport {
  std::string volume, node;
  Position position;                ///< up to there the store's catalog has the log
  std::uint64_t generation = 0;     ///< of the log that it follows, for people: 1, 2, ...
  std::uint64_t in_etcd = 0;        ///< of the log in etcd; 0: there is none
  std::vector<std::string> losses;  ///< what etcd or another node has and the new log would not
  bool is_begun = false;            ///< the volume's log is the new one
  std::vector<std::string> lost;    ///< restored: paths of files with bytes that are gone
};

/// With `is_look` only looks, whoever is up, and tells losses instead of failing for them. Errors:
/// kNotFound (no store of a cluster; it was never mounted), kBusy (a node's session lives; the
/// volume changes), kExists (the report would name losses, and no `force`: they stand in the error;
/// another volume has the name), kStale (the catalog was found wrong, the node was removed or is
/// another store), kAccess (the secret), kTimeout (within kEtcdTimeoutNs; it may have begun: call
/// again), those of etcd with its endpoints in front, of Disk and of the catalog.
Result<ReseedReport> reseed_log(Disk& disk, Clock& clock, Random& random, const std::string& store,
                                const ReseedOptions& options);
Result<ReseedReport> reseed_log(Disk& disk, Clock& clock, Random& random, etcd::EtcdClient& client,
                                const std::string& store, const ReseedOptions& options);

/// A new log begins with a saved catalog instead of the store's own; what was changed since is
/// given up. The store's catalog must follow the log in etcd, whose rest is read, so that it is
/// known where the segments are now. With `is_look` nothing changes but the store's spare folder.
/// Errors: those of reseed_log(); of the file: kNotFound, kCorrupt, kNewerFormat, kInvalid (of
/// another volume), kIo; kExists (without `force`: files whose bytes are gone); kStale (also: the
/// store's catalog follows another log, or the log begins behind it).
Result<ReseedReport> restore_catalog(Disk& disk, Clock& clock, Random& random,
                                     const std::string& store, const RestoreOptions& options);
Result<ReseedReport> restore_catalog(Disk& disk, Clock& clock, Random& random,
                                     etcd::EtcdClient& client, const std::string& store,
                                     const RestoreOptions& options);

/// The store gives its catalog up: the next mount takes that of another node. Errors: kNotFound (no
/// store of a cluster), those of Disk.
Status give_catalog_up(Disk& disk, const std::string& store);

}  // namespace kvsyncfs
