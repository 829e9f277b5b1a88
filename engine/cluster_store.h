// A store as a node of a cluster: how it is made, and what programs other than the daemon may ask
// about its cluster. The only header of the cluster that mkfs/ and tools/ see.
//
// etcd has the volume and the node last of all, and then comes the superblock. Before, the folder
// has `cluster.new` (the configuration, with id 0) and `secret`, both durable; `cluster.new` goes
// when the superblock is there. It names the UUID of the store, which is in the node's record as
// well. So what a crash or a failure leaves, in the folder alone or also in etcd, is recognised by
// the next try in the same folder, which goes on from there with the same secret. Layouts:
// kvsyncfs-format(5), "Cluster".
//
// Every call ends within kEtcdTimeoutNs after etcd was silent for the first time. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/engine.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/env/random.h"
#include "engine/format/cluster_config.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

namespace etcd {
class EtcdClient;
}

inline constexpr std::uint64_t kEtcdTimeoutNs = 10'000'000'000;
/// A volume's segments are of one size; a store must have room for so many.
inline constexpr std::uint64_t kSegmentsPerStoreMin = 16;

// Files of a cluster's store, beside those of every store.
inline constexpr std::string_view kClusterFile = "cluster";
inline constexpr std::string_view kSecretFile = "secret";
inline constexpr std::string_view kNextSecretFile = "secret.next";  ///< while that changes
inline constexpr std::string_view kUnfinishedFile = "cluster.new";
inline constexpr std::string_view kSecondCatalogFolder = "catalog.2";
inline constexpr std::string_view kSecondCatalogMark = "catalog.second";  ///< see catalog_folder.h
inline constexpr std::string_view kDoubtedCatalogMark = "catalog.doubted";

struct ClusterAddress {
  std::vector<std::string> endpoints;  ///< "host:port"
  bool tls = false;
};
/// "etcd://H1:2379,H2:2379" or "etcds://..." for TLS. Errors: kInvalid.
Result<ClusterAddress> parse_cluster_address(std::string_view text);

struct ClusterFormat {
  ClusterConfig config;        ///< as it is to be; id and store are drawn
  bool join = false;           ///< the volume exists; else it must not
  std::string secret;          ///< join: the volume's, kVolumeSecretSize bytes
  std::uint32_t replicas = 2;  ///< not join: nodes that hold a segment
  bool force = false;  ///< takes the place of a volume, or of a node, that was never mounted
};

/// Looks in etcd whether format_cluster_store() would be refused; changes nothing. Errors: those of
/// format_cluster_store().
Status check_cluster_format(Disk& disk, Clock& clock, const FormatOptions& options,
                            const ClusterFormat& cluster);

/// Makes a volume with its first store, or another store of it: all files, the records in etcd, the
/// superblock last. `options.uuid` (zeros: drawn), uid and gid are those of a new volume and mean
/// nothing for a join. The folder may hold what an earlier try left. A failure leaves
/// `cluster.new` and `secret` where etcd may have the node.
/// Errors: kExists (the folder is not empty; the volume or the node exists), kNotFound (no such
/// volume), kAccess (the secret is not the volume's; etcd refuses the user), kBusy (force: it was
/// mounted once), kInvalid (an option; a store that is too small for the volume's segments),
/// kTimeout (etcd does not answer), other errors of etcd with its endpoints in front, kNoSpace,
/// kIo.
Result<Superblock> format_cluster_store(Disk& disk, Clock& clock, Random& random,
                                        const FormatOptions& options, const ClusterFormat& cluster);

// The same, with a client that is there.
Status check_cluster_format(Disk& disk, Clock& clock, etcd::EtcdClient& client,
                            const FormatOptions& options, const ClusterFormat& cluster);
Result<Superblock> format_cluster_store(Disk& disk, Clock& clock, Random& random,
                                        etcd::EtcdClient& client, const FormatOptions& options,
                                        const ClusterFormat& cluster);

/// What a try that did not come to its end was to make; nothing where there is none. A file that a
/// crash has torn is an empty configuration: etcd was not told of it. Errors: kNewerFormat, kIo,
/// kAccess.
Result<std::optional<ClusterConfig>> unfinished_cluster_store(Disk& disk, const std::string& store);

/// Errors: kNotFound (not a cluster's store), kCorrupt, kNewerFormat, kIo, all with the path.
Result<ClusterConfig> read_cluster_config(Disk& disk, const std::string& store);
/// The volume's secret, kVolumeSecretSize bytes, from a file. Errors: kInvalid, those of Disk.
Result<std::string> read_volume_secret(Disk& disk, const std::string& path);

}  // namespace kvsyncfs
