#include "engine/open_store.h"

#include "engine/cluster/etcd_access.h"
#include "engine/cluster/member.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_seams.h"
#include "engine/cluster_store.h"
#include "engine/format/cluster_config.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/net/auth.h"
#include "engine/net/tcp/tcp_transport.h"
#include "engine/task_threads.h"

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
      : disk_(disk), clock_(clock), random_(random), tasks_(clock), network_(clock) {}
  ~ClusterStore() override {
    if (transport_) transport_->stop();
    network_.stop();
    engine_.reset();
  }

  Status open(EngineOptions options, const ClusterMount& mount);
  Engine& engine() override { return *engine_; }
  bool is_clustered() const override { return true; }
  std::string uuid() const override { return uuid_; }

 private:
  Status connect(const ClusterConfig& config, const VolumeRecord& volume, const std::string& secret,
                 const ClusterMount& mount);

  Disk& disk_;
  Clock& clock_;
  Random& random_;
  std::string uuid_;
  std::unique_ptr<etcd::GrpcClient> etcd_;
  std::unique_ptr<TcpTransport> transport_;
  TaskThreads tasks_, network_;
  std::unique_ptr<ClusterSeams> seams_;
  std::unique_ptr<Engine> engine_;
};

Status ClusterStore::connect(const ClusterConfig& config, const VolumeRecord& volume,
                             const std::string& secret, const ClusterMount& mount) {
  const std::string listen = mount.listen.empty() ? config.listen : mount.listen;
  KVSYNCFS_ASSIGN(const std::uint64_t incarnation,
                  next_incarnation(*etcd_, clock_, config.volume, config.node));
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
  return {};
}

Status ClusterStore::open(EngineOptions options, const ClusterMount& mount) {
  if (options.read_only)
    return Error(Code::kUnsupported, options.store + ": a node of a cluster cannot be read-only");
  KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(disk_, options.store));
  uuid_ = uuid_text(config.store);
  KVSYNCFS_ASSIGN(const std::string secret, read_volume_secret(disk_, options.store + "/secret"));
  KVSYNCFS_ASSIGN(etcd_, connect_etcd(disk_, clock_, config));
  VolumeRecordStore records(*etcd_, clock_, config.volume);
  const auto volume = records.confirm(config, clock_.boot_ns() + options.timeout_ns);
  if (!volume) return with_endpoints(config, volume.error());
  // Before it joins: the others would wait for the word of a node that cannot speak to them.
  if (make_secret_check(secret, volume->uuid) != volume->secret_check)
    return Error(Code::kAccess,
                 options.store + "/secret: not the secret of volume " + config.volume);
  KVSYNCFS_TRY(connect(config, *volume, secret, mount));
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
