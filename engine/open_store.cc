#include "engine/open_store.h"

#include <fmt/format.h>

#include "engine/cluster/etcd_access.h"
#include "engine/cluster/member.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_seams.h"
#include "engine/cluster_store.h"
#include "engine/format/cluster_config.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/net/tcp/tcp_transport.h"
#include "engine/node_generation.h"
#include "engine/task_threads.h"
#include "engine/volume_secrets.h"

namespace kvsyncfs {
namespace {

class LoneStore final : public OpenStore {
 public:
  explicit LoneStore(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
  Engine& engine() override { return *engine_; }
  bool is_clustered() const override { return false; }
  std::string uuid() const override { return engine_->superblock().uuid_text(); }

 private:
  std::unique_ptr<Engine> engine_;
};

/// Owns what the seams of a cluster name; the engine goes before them.
class ClusterStore final : public OpenStore {
 public:
  ClusterStore(Disk& disk, Clock& clock, Random& random)
      : disk_(disk),
        clock_(clock),
        random_(random),
        tasks_(clock),
        network_(clock),
        watch_(clock) {}
  ~ClusterStore() override {
    watch_.stop();
    if (transport_) transport_->stop();
    network_.stop();
    engine_.reset();
  }

  Status open(EngineOptions options, const ClusterMount& mount);
  Engine& engine() override { return *engine_; }
  bool is_clustered() const override { return true; }
  std::string uuid() const override { return uuid_; }

 private:
  Result<VolumeRecord> volume_of(const ClusterConfig& config, const std::string& store,
                                 std::uint64_t deadline_ns);
  Status connect(const ClusterConfig& config, const VolumeRecord& volume, const FollowedLog& log,
                 const std::string& secret, const ClusterMount& mount);
  void watch_secret(const ClusterConfig& config, const EngineOptions& options,
                    const std::vector<std::string>& known);

  Disk& disk_;
  Clock& clock_;
  Random& random_;
  std::string uuid_;
  std::unique_ptr<etcd::GrpcClient> etcd_;
  std::unique_ptr<TcpTransport> transport_;
  TaskThreads tasks_, network_, watch_;
  std::unique_ptr<SecretKeeper> keeper_;
  std::unique_ptr<ClusterSeams> seams_;
  std::unique_ptr<Engine> engine_;
};

Result<VolumeRecord> ClusterStore::volume_of(const ClusterConfig& config, const std::string& store,
                                             std::uint64_t deadline_ns) {
  const auto volume = VolumeRecordStore(*etcd_, clock_, config.volume).volume(deadline_ns);
  if (!volume && volume.error().code == Code::kNotFound)
    return with_endpoints(
        config, Error(Code::kNotFound, fmt::format("{}; if etcd's data is lost, kvsyncfs-ctl {} "
                                                   "reseed-log begins the log anew",
                                                   volume.error().detail, store)));
  if (!volume) return with_endpoints(config, volume.error());
  return *volume;
}

void ClusterStore::watch_secret(const ClusterConfig& config, const EngineOptions& options,
                                const std::vector<std::string>& known) {
  transport_->set_secrets(known);
  keeper_ = std::make_unique<SecretKeeper>(
      disk_, clock_, *etcd_, options.store, config, known,
      [this](const std::vector<std::string>& secrets) { transport_->set_secrets(secrets); },
      options.warn);
  watch_.start("secret", [this] { return keeper_->step(); });
}

Status ClusterStore::connect(const ClusterConfig& config, const VolumeRecord& volume,
                             const FollowedLog& log, const std::string& secret,
                             const ClusterMount& mount) {
  const std::string listen = mount.listen.empty() ? config.listen : mount.listen;
  KVSYNCFS_ASSIGN(const std::uint64_t incarnation,
                  next_incarnation(*etcd_, clock_, config.volume, config.node, log.generation));
  TcpOptions tcp;
  tcp.node = config.id;
  tcp.incarnation = {incarnation};
  tcp.volume = volume.uuid;
  tcp.secret = secret;
  tcp.listen = listen;
  tcp.tls = {mount.tls_certificate, mount.tls_key, mount.tls_authority};
  KVSYNCFS_ASSIGN(transport_, make_tcp_transport(clock_, random_, tcp));
  network_.start("network", [this] {
    transport_->run();
    return ~std::uint64_t{0};
  });
  seams_ = std::make_unique<ClusterSeams>(ClusterSeams{*etcd_, *transport_, tasks_});
  seams_->volume = config.volume;
  seams_->node_name = config.node;
  seams_->rack = config.rack;
  seams_->node = config.id;
  seams_->incarnation = {incarnation};
  seams_->addresses = {listen};
  seams_->replicas = volume.replicas;
  seams_->version = mount.version;
  if (!tcp.tls.empty()) seams_->features = {std::string(kFeatureTls)};
  seams_->log_size_bytes = mount.log_size_bytes;
  seams_->generation = log.generation;
  seams_->has_catalog = log.has_catalog;
  return {};
}

Status ClusterStore::open(EngineOptions options, const ClusterMount& mount) {
  if (options.read_only)
    return Error(Code::kUnsupported, options.store + ": a node of a cluster cannot be read-only");
  KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(disk_, options.store));
  uuid_ = uuid_text(config.store);
  KVSYNCFS_ASSIGN(etcd_, connect_etcd(disk_, clock_, config));
  const std::uint64_t until_ns = clock_.boot_ns() + options.timeout_ns;
  KVSYNCFS_ASSIGN(const VolumeRecord volume, volume_of(config, options.store, until_ns));
  // Before the node joins: the others would wait for the word of one that cannot speak to them.
  KVSYNCFS_TRY(look_at_secrets(disk_, options.store, config, volume));
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(disk_, options.store));
  LogGenerations logs(*etcd_, clock_, config.volume);
  const auto log = follow_log(disk_, logs, options.store, config, superblock, until_ns);
  if (!log) return with_endpoints(config, log.error());
  const auto confirmed = VolumeRecordStore(*etcd_, clock_, config.volume).confirm(config, until_ns);
  if (!confirmed) return with_endpoints(config, confirmed.error());
  KVSYNCFS_TRY(keep_volume_record(disk_, options.store, volume));
  KVSYNCFS_ASSIGN(const KnownSecrets known, settle_secrets(disk_, options.store, config, volume));
  KVSYNCFS_TRY(connect(config, volume, *log, known.secrets.front(), mount));
  watch_secret(config, options, known.secrets);
  options.cluster = seams_.get();
  KVSYNCFS_ASSIGN(engine_, Engine::open(disk_, clock_, random_, std::move(options)));
  return {};
}

}  // namespace

Result<std::string> store_uuid(Disk& disk, const std::string& store) {
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(disk, store));
  if ((superblock.incompatible & kIncompatibleCluster) == 0) return superblock.uuid_text();
  KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(disk, store));
  return uuid_text(config.store);
}

Result<std::unique_ptr<OpenStore>> open_store(Disk& disk, Clock& clock, Random& random,
                                              EngineOptions options, const ClusterMount& mount) {
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(disk, options.store));
  if ((superblock.incompatible & kIncompatibleCluster) == 0) {
    KVSYNCFS_ASSIGN(auto engine, Engine::open(disk, clock, random, std::move(options)));
    return std::unique_ptr<OpenStore>(std::make_unique<LoneStore>(std::move(engine)));
  }
  auto store = std::make_unique<ClusterStore>(disk, clock, random);
  KVSYNCFS_TRY(store->open(std::move(options), mount));
  return std::unique_ptr<OpenStore>(std::move(store));
}

}  // namespace kvsyncfs
