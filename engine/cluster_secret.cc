#include "engine/cluster_secret.h"

#include <fmt/format.h>

#include "engine/cluster/etcd_access.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_nodes.h"
#include "engine/cluster_store.h"
#include "engine/net/auth.h"
#include "engine/volume_secrets.h"

namespace kvsyncfs {
namespace {

/// One call: the store, and the volume as etcd has it.
class Changer {
 public:
  Changer(Disk& disk, Clock& clock, etcd::EtcdClient& client, std::string store)
      : disk_(disk), clock_(clock), client_(client), store_(std::move(store)) {}

  Result<SecretChange> begin(Random& random);
  Result<SecretChange> finish();
  Status cancel();

 private:
  Status read();
  /// Draws, durably: from then on etcd may know it.
  Result<std::string> draw_next(Random& random);
  Status need_next() const;
  Result<SecretChange> report();
  Status change_to(const VolumeRecord& record);
  Error told(const Error& error) const {
    const bool is_said = error.code == Code::kBusy || error.code == Code::kNotFound;
    return is_said ? error : with_endpoints(config_, error);
  }
  Error none() const {
    return Error(Code::kNotFound,
                 fmt::format("the secret of volume {} is not being changed", config_.volume));
  }
  std::uint64_t deadline() { return clock_.boot_ns() + kEtcdTimeoutNs; }

  Disk& disk_;
  Clock& clock_;
  etcd::EtcdClient& client_;
  const std::string store_;
  ClusterConfig config_;
  VolumeRecord record_;
  KnownSecrets known_;
};

Status Changer::read() {
  KVSYNCFS_ASSIGN(config_, read_cluster_config(disk_, store_));
  auto record = VolumeRecordStore(client_, clock_, config_.volume).volume(deadline());
  if (!record) return told(record.error());
  record_ = *record;
  KVSYNCFS_ASSIGN(known_, look_at_secrets(disk_, store_, config_, record_));
  return {};
}

Status Changer::change_to(const VolumeRecord& record) {
  const Status changed =
      VolumeRecordStore(client_, clock_, config_.volume).change(record_, record, deadline());
  if (!changed) return told(changed.error());
  record_ = record;
  return {};
}

Result<std::string> Changer::draw_next(Random& random) {
  std::string secret;
  while (secret.size() < kVolumeSecretSize) {
    const std::uint64_t bits = random.next();
    for (int shift = 0; shift < 64; shift += 8) secret += static_cast<char>(bits >> shift);
  }
  KVSYNCFS_TRY(replace_small_file(disk_, store_, kNextSecretFile, encode_secret(secret)));
  return secret;
}

Status Changer::need_next() const {
  if (!record_.next_secret_check) return none();
  if (!known_.lacks_next) return {};
  return Error(
      Code::kNotFound,
      fmt::format("{}/{} is not the next secret of volume {}: copy it from where the change "
                  "began, or cancel that",
                  store_, kNextSecretFile, config_.volume));
}

Result<SecretChange> Changer::report() {
  SecretChange change;
  change.volume = config_.volume;
  change.file = store_ + "/" + std::string(kNextSecretFile);
  const auto told_ids = VolumeRecordStore(client_, clock_, config_.volume).told_secrets(deadline());
  if (!told_ids) return told(told_ids.error());
  KVSYNCFS_ASSIGN(const auto nodes, list_cluster_nodes(clock_, client_, config_));
  const std::uint64_t wanted = secret_id(known_.secrets.front(), record_.uuid);
  for (const ClusterNode& node : nodes) {
    const auto found = told_ids->find(node.name);
    change.nodes.push_back(
        {node.name, node.member.has_value(), found != told_ids->end() && found->second == wanted});
  }
  return change;
}

Result<SecretChange> Changer::begin(Random& random) {
  KVSYNCFS_TRY(read());
  if (record_.next_secret_check) {
    KVSYNCFS_TRY(need_next());
    return report();
  }
  KVSYNCFS_ASSIGN(const std::string next, draw_next(random));
  VolumeRecord record = record_;
  record.next_secret_check = make_secret_check(next, record.uuid);
  KVSYNCFS_TRY(change_to(record));
  known_.secrets.insert(known_.secrets.begin(), next);
  return report();
}

Result<SecretChange> Changer::finish() {
  KVSYNCFS_TRY(read());
  KVSYNCFS_TRY(need_next());
  KVSYNCFS_ASSIGN(SecretChange change, report());
  std::vector<std::string> lacking;
  for (const SecretChange::Node& node : change.nodes)
    if (node.is_up && !node.has_next) lacking.push_back(node.name);
  if (!lacking.empty())
    return Error(Code::kBusy,
                 fmt::format("nodes are up without the next secret, and would be cut off: {}",
                             fmt::join(lacking, ", ")));
  VolumeRecord record = record_;
  record.secret_check = *record.next_secret_check;
  record.next_secret_check.reset();
  KVSYNCFS_TRY(change_to(record));
  return change;
}

Status Changer::cancel() {
  KVSYNCFS_TRY(read());
  if (!record_.next_secret_check) return none();
  VolumeRecord record = record_;
  record.next_secret_check.reset();
  return change_to(record);
}

Result<std::unique_ptr<etcd::GrpcClient>> client_of(Disk& disk, Clock& clock,
                                                    const std::string& store) {
  KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(disk, store));
  return connect_etcd(disk, clock, config);
}

}  // namespace

Result<SecretChange> begin_secret_change(Disk& disk, Clock& clock, Random& random,
                                         etcd::EtcdClient& client, const std::string& store) {
  return Changer(disk, clock, client, store).begin(random);
}

Result<SecretChange> finish_secret_change(Disk& disk, Clock& clock, etcd::EtcdClient& client,
                                          const std::string& store) {
  return Changer(disk, clock, client, store).finish();
}

Status cancel_secret_change(Disk& disk, Clock& clock, etcd::EtcdClient& client,
                            const std::string& store) {
  return Changer(disk, clock, client, store).cancel();
}

Result<SecretChange> begin_secret_change(Disk& disk, Clock& clock, Random& random,
                                         const std::string& store) {
  KVSYNCFS_ASSIGN(const auto client, client_of(disk, clock, store));
  return begin_secret_change(disk, clock, random, *client, store);
}

Result<SecretChange> finish_secret_change(Disk& disk, Clock& clock, const std::string& store) {
  KVSYNCFS_ASSIGN(const auto client, client_of(disk, clock, store));
  return finish_secret_change(disk, clock, *client, store);
}

Status cancel_secret_change(Disk& disk, Clock& clock, const std::string& store) {
  KVSYNCFS_ASSIGN(const auto client, client_of(disk, clock, store));
  return cancel_secret_change(disk, clock, *client, store);
}

}  // namespace kvsyncfs
