// What a store knows of its cluster, and what etcd knows of a volume and of its nodes. JSON, for
// people can then read it with etcdctl(1) and less(1). Layouts: kvsyncfs-format(5), "Cluster".
//
// Fields that are not known are ignored; a larger version is refused. Pure. Thread: any.
//
// Errors of every decode: kCorrupt (not JSON, too large, a field that is missing or out of range),
// kNewerFormat.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

inline constexpr std::uint32_t kClusterVersion = 1;           ///< of the three structures
inline constexpr std::size_t kClusterTextMax = 64u << 10;     ///< bytes of one encoded structure
inline constexpr std::size_t kClusterNameMax = 64;            ///< bytes
inline constexpr std::size_t kEndpointsMax = 16;              ///< of etcd
inline constexpr std::uint32_t kReplicasMax = 8;              ///< of a segment
inline constexpr std::size_t kVolumeSecretSize = 32;          ///< bytes
inline constexpr std::uint64_t kSegmentSizeMax = 1ull << 30;  ///< bytes, in a volume record

/// File STORE/cluster: which node of which volume the store is, and where its etcd is.
struct ClusterConfig {
  std::string volume;                      ///< a name
  std::vector<std::string> endpoints;      ///< 1 to kEndpointsMax of "host:port", "[v6]:port"
  bool tls = false;                        ///< to etcd
  std::string ca_file;                     ///< PEM; empty: the system's authorities
  std::string certificate_file, key_file;  ///< PEM; both or neither
  std::string user, password_file;         ///< of etcd; both or neither
  std::string node;                        ///< a name
  NodeId id;                               ///< 0: not given yet, while the store is being made
  Uuid store{};                            ///< of this store; its node's record has the same
  std::string rack;                        ///< a name, or empty
  std::string listen;                      ///< "address:port" for the other nodes
  bool operator==(const ClusterConfig&) const = default;
};

/// etcd key .../volume. Written when the volume is made, and when its secret changes.
struct VolumeRecord {
  Uuid uuid{};
  std::uint32_t replicas = 2;            ///< 1 to kReplicasMax: holders of a segment
  std::uint64_t segment_size_bytes = 0;  ///< of every store; whole pages
  std::uint32_t uid = 0, gid = 0;        ///< of the root directory
  Timestamp created;
  using SecretCheck = std::array<std::uint8_t, 32>;
  SecretCheck secret_check{};                    ///< tells a wrong secret, and nothing of the right
  std::optional<SecretCheck> next_secret_check;  ///< while the secret is being changed
  bool operator==(const VolumeRecord&) const = default;
};

/// etcd key .../nodes/<name>. Permanent.
struct NodeRecord {
  NodeId id;     ///< dense from 1, never given again
  Uuid store{};  ///< of the one store that is this node
  std::string rack;
  Timestamp created;
  bool operator==(const NodeRecord&) const = default;
};

// With a newline at the end.
std::string encode(const ClusterConfig& config);
std::string encode(const VolumeRecord& record);
std::string encode(const NodeRecord& record);
Result<ClusterConfig> decode_cluster_config(std::string_view text);
Result<VolumeRecord> decode_volume_record(std::string_view text);
Result<NodeRecord> decode_node_record(std::string_view text);

/// A volume's, node's or rack's name: 1 to 64 of A-Z a-z 0-9 . _ -
bool is_cluster_name(std::string_view text);

struct HostPort {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
};
/// "host:port" or "[v6]:port"; host of 1 to 255 bytes without blanks. Errors: kInvalid.
Result<HostPort> parse_host_port(std::string_view text);

/// The file STORE/secret: 64 lower-case hex digits and a newline.
std::string encode_secret(std::string_view secret);
/// The 32 bytes. Errors: kInvalid.
Result<std::string> decode_secret(std::string_view text);

}  // namespace kvsyncfs
