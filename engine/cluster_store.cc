#include "engine/cluster_store.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/cluster/etcd_access.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/engine_format.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/net/auth.h"

namespace kvsyncfs {
namespace {

constexpr std::array kAllowedFiles = {kUnfinishedFile, kSecretFile};

std::string path_of(const std::string& store, std::string_view name) {
  return store + "/" + std::string(name);
}

/// Durable when the folder is synced.
Status write_file(Disk& disk, const std::string& path, const std::string& bytes) {
  KVSYNCFS_ASSIGN(const bool exists, disk.exists(path));
  if (exists) KVSYNCFS_TRY(disk.remove(path));
  KVSYNCFS_ASSIGN(const auto file, disk.open(path, OpenMode::kCreateNew));
  KVSYNCFS_TRY(file->write_at(0, as_bytes(bytes)));
  return file->sync();
}

Error with_path(const std::string& path, const Error& error) {
  return Error(error.code, path + ": " + error.detail);
}

/// What etcd's records say of a volume or node is told as it is, what the client says with the
/// endpoints.
Error told(const ClusterConfig& config, const Error& error) {
  const bool record =
      error.code == Code::kExists || error.code == Code::kNotFound || error.code == Code::kBusy;
  return record ? error : with_endpoints(config, error);
}

/// As EtcdClient says of a change.
bool outcome_is_unknown(Code code) {
  return code == Code::kTimeout || code == Code::kNoSpace || code == Code::kCorrupt ||
         code == Code::kNoMemory;
}

class ClusterFormatter {
 public:
  ClusterFormatter(Disk& disk, Clock& clock, etcd::EtcdClient& client, FormatOptions options,
                   const ClusterFormat& cluster)
      : disk_(disk),
        clock_(clock),
        client_(client),
        records_(client, clock, cluster.config.volume),
        options_(std::move(options)),
        cluster_(cluster),
        config_(cluster.config) {}

  /// Reads the folder and etcd, and fixes what is to be made. Draws nothing.
  Status plan();
  Result<Superblock> make(Random& random);

 private:
  Status check_options() const;
  Status plan_new_volume(const Result<VolumeRecord>& volume, const Result<NodeRecord>& node);
  Status plan_node(const Result<VolumeRecord>& volume, const Result<NodeRecord>& node);
  Status plan_superblock();
  void draw(Random& random);
  Status write_unfinished();
  Status register_node();
  Status register_volume(std::uint64_t deadline_ns);
  Status forget_unfinished();

  /// The node in etcd is what an earlier try in this folder made.
  bool is_ours(const Result<NodeRecord>& node) const {
    return node && earlier_ && node->store == earlier_->store;
  }
  std::uint64_t deadline() { return clock_.boot_ns() + kEtcdTimeoutNs; }
  std::string path(std::string_view name) const { return path_of(options_.store, name); }

  Disk& disk_;
  Clock& clock_;
  etcd::EtcdClient& client_;
  VolumeRecordStore records_;
  FormatOptions options_;
  const ClusterFormat& cluster_;

  ClusterConfig config_;
  std::optional<ClusterConfig> earlier_;
  VolumeRecord record_;
  Superblock superblock_;
  std::string secret_;
  bool has_volume_ = false;  ///< in etcd: as it is to stay
  bool in_the_way_ = false;  ///< in etcd: a volume or node whose place is taken
};

Status ClusterFormatter::check_options() const {
  if (!is_cluster_name(config_.volume) || !is_cluster_name(config_.node))
    return Error(Code::kInvalid,
                 fmt::format("volume '{}', node '{}': a name has 1 to {} of A-Z a-z 0-9 . _ -",
                             config_.volume, config_.node, kClusterNameMax));
  const auto decoded = decode_cluster_config(encode(config_));
  if (!decoded) return Error(Code::kInvalid, decoded.error().detail);
  if (cluster_.replicas == 0 || cluster_.replicas > kReplicasMax)
    return Error(Code::kInvalid,
                 fmt::format("{} replicas: 1 to {}", cluster_.replicas, kReplicasMax));
  if (cluster_.join && cluster_.secret.size() != kVolumeSecretSize)
    return Error(Code::kInvalid, "a join needs the volume's secret");
  return {};
}

Status ClusterFormatter::plan() {
  KVSYNCFS_TRY(check_options());
  KVSYNCFS_ASSIGN(earlier_, unfinished_cluster_store(disk_, options_.store));
  const bool same =
      earlier_ && earlier_->volume == config_.volume && earlier_->node == config_.node;
  if (!same || cluster_.force) earlier_.reset();
  if (earlier_) config_.store = earlier_->store;
  const std::uint64_t until_ns = deadline();
  const auto volume = records_.volume(until_ns);
  if (!volume && volume.error().code != Code::kNotFound) return told(config_, volume.error());
  const auto node = records_.node(config_.node, until_ns);
  if (!node && node.error().code != Code::kNotFound) return told(config_, node.error());
  if (is_ours(node)) {  // the superblock is torn, then, or lost: there may be data
    const Status unused = records_.check_unused(config_.node, until_ns);
    if (!unused) return told(config_, unused.error());
  }
  KVSYNCFS_TRY(cluster_.join ? plan_node(volume, node) : plan_new_volume(volume, node));
  return plan_superblock();
}

Status ClusterFormatter::plan_new_volume(const Result<VolumeRecord>& volume,
                                         const Result<NodeRecord>& node) {
  const auto present = read_volume_secret(disk_, path(kSecretFile));
  if (earlier_ && present) secret_ = *present;
  if (volume && is_ours(node)) {
    has_volume_ = true;
    record_ = *volume;
    config_.id = node->id;
    if (make_secret_check(secret_, record_.uuid) == record_.secret_check) return {};
    return Error(Code::kCorrupt, path(kSecretFile) +
                                     ": not the secret of the volume that an "
                                     "earlier try made; --force makes it anew");
  }
  if (volume && !cluster_.force)
    return Error(Code::kExists,
                 fmt::format("volume {} exists in etcd; with --join and its secret this store "
                             "becomes a node of it",
                             config_.volume));
  in_the_way_ = cluster_.force;
  if (in_the_way_) {
    const Status unused = records_.check_unused(deadline());
    if (!unused) return told(config_, unused.error());
  }
  record_.uuid = options_.uuid;
  record_.replicas = cluster_.replicas;
  record_.uid = options_.uid;
  record_.gid = options_.gid;
  record_.created = clock_.now();
  return {};
}

Status ClusterFormatter::plan_node(const Result<VolumeRecord>& volume,
                                   const Result<NodeRecord>& node) {
  if (!volume) return volume.error();
  secret_ = cluster_.secret;
  if (make_secret_check(secret_, volume->uuid) != volume->secret_check)
    return Error(Code::kAccess, "the secret is not that of volume " + config_.volume);
  has_volume_ = true;
  record_ = *volume;
  if (!node) return {};
  if (is_ours(node)) {
    config_.id = node->id;
    return {};
  }
  if (!cluster_.force)
    return Error(Code::kExists,
                 fmt::format("node {} exists in volume {}", config_.node, config_.volume));
  in_the_way_ = true;
  const Status unused = records_.check_unused(config_.node, deadline());
  return unused ? unused : told(config_, unused.error());
}

Status ClusterFormatter::plan_superblock() {
  if (has_volume_) {
    options_.uuid = record_.uuid;
    options_.uid = record_.uid;
    options_.gid = record_.gid;
  }
  KVSYNCFS_ASSIGN(superblock_, plan_store(options_, clock_.now()));
  superblock_.incompatible = kIncompatibleCluster;
  if (!has_volume_) record_.segment_size_bytes = superblock_.segment_size_bytes;
  superblock_.segment_size_bytes = record_.segment_size_bytes;
  const std::uint64_t least = kSegmentsPerStoreMin * record_.segment_size_bytes;
  if (superblock_.size_bytes < least)
    return Error(Code::kInvalid,
                 fmt::format("size {} is too small for the segments of volume {}: the least is {}",
                             superblock_.size_bytes, config_.volume, least));
  return {};
}

/// What an earlier try drew stays.
void ClusterFormatter::draw(Random& random) {
  if (!earlier_) config_.store = draw_uuid(random);
  if (has_volume_) return;
  if (record_.uuid == Uuid{}) record_.uuid = draw_uuid(random);
  superblock_.uuid = record_.uuid;
  while (secret_.size() < kVolumeSecretSize) {
    const std::uint64_t bits = random.next();
    for (int shift = 0; shift < 64; shift += 8) secret_ += static_cast<char>(bits >> shift);
  }
  record_.secret_check = make_secret_check(secret_, record_.uuid);
}

/// etcd is not asked before both are durable. What an earlier try wrote is not written again: a
/// crash meanwhile would lose what etcd may know already.
Status ClusterFormatter::write_unfinished() {
  if (!earlier_) {
    KVSYNCFS_TRY(write_file(disk_, path(kUnfinishedFile), encode(config_)));
    KVSYNCFS_TRY(disk_.sync_directory(options_.store));
  }
  const auto present = read_volume_secret(disk_, path(kSecretFile));
  if (earlier_ && present && *present == secret_) return {};
  KVSYNCFS_TRY(write_file(disk_, path(kSecretFile), encode_secret(secret_)));
  return disk_.sync_directory(options_.store);
}

Status ClusterFormatter::register_volume(std::uint64_t deadline_ns) {
  if (in_the_way_) KVSYNCFS_TRY(records_.remove_unused(deadline_ns));
  // Made by an earlier try, perhaps: the transaction that makes the volume wants it unused.
  const Status log = format_etcd_log(client_, clock_, config_.volume, 1, {});
  if (!log && log.error().code != Code::kExists) return log;
  const NodeRecord first{{1}, config_.store, config_.rack, record_.created};
  KVSYNCFS_TRY(records_.create(record_, config_.node, first, deadline_ns));
  config_.id = first.id;
  return {};
}

Status ClusterFormatter::register_node() {
  if (config_.id.value != 0) return {};  // an earlier try did
  const std::uint64_t until_ns = deadline();
  if (!has_volume_) return register_volume(until_ns);
  const NodeRecord record{{}, config_.store, config_.rack, clock_.now()};
  auto id = in_the_way_ ? records_.replace(config_.node, record, until_ns)
                        : records_.add(record_, config_.node, record, until_ns);
  if (!id) return id.error();
  config_.id = *id;
  return {};
}

Status ClusterFormatter::forget_unfinished() {
  KVSYNCFS_TRY(disk_.remove(path(kUnfinishedFile)));
  return disk_.sync_directory(options_.store);
}

Result<Superblock> ClusterFormatter::make(Random& random) {
  KVSYNCFS_TRY(check_folder_is_free(disk_, options_.store, kAllowedFiles));
  draw(random);
  KVSYNCFS_TRY(write_unfinished());
  Status status = lay_out_store(disk_, options_, superblock_, record_.created);
  bool perhaps_made = earlier_.has_value();
  if (status) {
    status = register_node();
    perhaps_made = perhaps_made || status || outcome_is_unknown(status.error().code);
    if (!status) status = told(config_, status.error());
  }
  if (status) status = write_file(disk_, path(kClusterFile), encode(config_));
  if (status) status = finish_store(disk_, options_, superblock_);
  if (status) {
    KVSYNCFS_TRY(forget_unfinished());
    return superblock_;
  }
  if (perhaps_made)
    return Error(status.error().code,
                 status.error().detail + "; the same command again goes on from here");
  // The first error is the one to tell.
  static_cast<void>(forget_unfinished());
  static_cast<void>(disk_.remove(path(kSecretFile)));
  return status.error();
}

}  // namespace

Result<ClusterAddress> parse_cluster_address(std::string_view text) {
  constexpr std::string_view kPlain = "etcd://", kTls = "etcds://";
  const auto bad = [&](const std::string& why) {
    return Error(Code::kInvalid, fmt::format("'{}': {}", text, why));
  };
  ClusterAddress address;
  address.tls = text.starts_with(kTls);
  if (!address.tls && !text.starts_with(kPlain))
    return bad("not etcd://HOST:PORT[,HOST:PORT...] or etcds://...");
  std::string_view rest = text.substr(address.tls ? kTls.size() : kPlain.size());
  for (;;) {
    const std::size_t comma = rest.find(',');
    const std::string endpoint(rest.substr(0, comma));
    const auto parsed = parse_host_port(endpoint);
    if (!parsed || parsed->port == 0) return bad("'" + endpoint + "' is not HOST:PORT");
    address.endpoints.push_back(endpoint);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (address.endpoints.size() > kEndpointsMax)
    return bad(fmt::format("more than {} endpoints", kEndpointsMax));
  return address;
}

Status check_cluster_format(Disk& disk, Clock& clock, etcd::EtcdClient& client,
                            const FormatOptions& options, const ClusterFormat& cluster) {
  return ClusterFormatter(disk, clock, client, options, cluster).plan();
}

Result<Superblock> format_cluster_store(Disk& disk, Clock& clock, Random& random,
                                        etcd::EtcdClient& client, const FormatOptions& options,
                                        const ClusterFormat& cluster) {
  ClusterFormatter formatter(disk, clock, client, options, cluster);
  KVSYNCFS_TRY(formatter.plan());
  return formatter.make(random);
}

Status check_cluster_format(Disk& disk, Clock& clock, const FormatOptions& options,
                            const ClusterFormat& cluster) {
  KVSYNCFS_ASSIGN(const auto client, connect_etcd(disk, clock, cluster.config));
  return check_cluster_format(disk, clock, *client, options, cluster);
}

Result<Superblock> format_cluster_store(Disk& disk, Clock& clock, Random& random,
                                        const FormatOptions& options,
                                        const ClusterFormat& cluster) {
  KVSYNCFS_ASSIGN(const auto client, connect_etcd(disk, clock, cluster.config));
  return format_cluster_store(disk, clock, random, *client, options, cluster);
}

Result<std::optional<ClusterConfig>> unfinished_cluster_store(Disk& disk,
                                                              const std::string& store) {
  const auto text = read_small_file(disk, path_of(store, kUnfinishedFile), kClusterTextMax);
  if (!text && text.error().code == Code::kNotFound) return std::optional<ClusterConfig>();
  if (!text) return text.error();
  const auto config = decode_cluster_config(*text);
  if (!config && config.error().code == Code::kNewerFormat)
    return with_path(path_of(store, kUnfinishedFile), config.error());
  return std::optional(config ? *config : ClusterConfig());
}

Result<ClusterConfig> read_cluster_config(Disk& disk, const std::string& store) {
  const std::string path = path_of(store, kClusterFile);
  KVSYNCFS_ASSIGN(const std::string text, read_small_file(disk, path, kClusterTextMax));
  auto config = decode_cluster_config(text);
  if (!config) return with_path(path, config.error());
  if (config->id.value == 0) return Error(Code::kCorrupt, path + ": no node id");
  return config;
}

Result<std::string> read_volume_secret(Disk& disk, const std::string& path) {
  constexpr std::size_t kTextSize = 2 * kVolumeSecretSize + 1;
  KVSYNCFS_ASSIGN(const std::string text, read_small_file(disk, path, kTextSize));
  auto secret = decode_secret(text);
  if (!secret) return with_path(path, secret.error());
  return secret;
}

}  // namespace kvsyncfs
