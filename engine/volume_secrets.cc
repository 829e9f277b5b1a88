#include "engine/volume_secrets.h"

#include <fmt/format.h>

#include <utility>

#include "engine/cluster_store.h"
#include "engine/net/auth.h"
#include "engine/node_generation.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kLookNs = 2'000'000'000;
}  // namespace

Result<KnownSecrets> look_at_secrets(Disk& disk, const std::string& store,
                                     const ClusterConfig& config, const VolumeRecord& record) {
  const std::string path = store + "/" + std::string(kSecretFile);
  KVSYNCFS_ASSIGN(const std::string secret, read_volume_secret(disk, path));
  const auto next = read_volume_secret(disk, store + "/" + std::string(kNextSecretFile));
  const auto check = make_secret_check(secret, record.uuid);
  const auto next_check = next ? make_secret_check(*next, record.uuid) : Proof{};
  if (check == record.secret_check) {
    if (!record.next_secret_check) return KnownSecrets{{secret}};
    if (next && next_check == *record.next_secret_check) return KnownSecrets{{*next, secret}};
    return KnownSecrets{{secret}, true};
  }
  // An etcd that was put back to the time of the change: the other nodes have it as well.
  if (record.next_secret_check && check == *record.next_secret_check) return KnownSecrets{{secret}};
  if (next && next_check == record.secret_check)
    return KnownSecrets{{*next}, record.next_secret_check.has_value(), true};
  return Error(Code::kAccess,
               fmt::format("{}: not the secret of volume {}; where that was changed, a copy of "
                           "another node's file has to take its place",
                           path, config.volume));
}

Result<KnownSecrets> settle_secrets(Disk& disk, const std::string& store,
                                    const ClusterConfig& config, const VolumeRecord& record) {
  KVSYNCFS_ASSIGN(KnownSecrets known, look_at_secrets(disk, store, config, record));
  if (!known.is_over) return known;
  const std::string folder = store + "/";
  KVSYNCFS_TRY(
      disk.rename(folder + std::string(kNextSecretFile), folder + std::string(kSecretFile)));
  KVSYNCFS_TRY(disk.sync_directory(store));
  known.is_over = false;
  return known;
}

SecretKeeper::SecretKeeper(Disk& disk, Clock& clock, etcd::EtcdClient& client, std::string store,
                           const ClusterConfig& config, std::vector<std::string> known, Apply apply,
                           Warn warn)
    : disk_(disk),
      clock_(clock),
      store_(std::move(store)),
      config_(config),
      records_(client, clock, config.volume),
      known_(std::move(known)),
      apply_(std::move(apply)),
      warn_(std::move(warn)) {}

void SecretKeeper::tell(std::string line) {
  if (line != told_ && !line.empty()) warn_(line);
  told_ = std::move(line);
}

/// While etcd is silent all stays as it is. The record is kept before a file is moved by it: who
/// begins the log anew without etcd must find the two to fit.
Status SecretKeeper::look() {
  const std::uint64_t until_ns = clock_.boot_ns() + kLookNs;
  const auto record = records_.volume(until_ns);
  if (!record) return {};
  KVSYNCFS_TRY(keep_volume_record(disk_, store_, *record));
  KVSYNCFS_ASSIGN(KnownSecrets now, settle_secrets(disk_, store_, config_, *record));
  if (now.secrets != known_) apply_(now.secrets);
  known_ = std::move(now.secrets);
  const std::uint64_t id = secret_id(known_.front(), record->uuid);
  if (id != told_id_ && records_.tell_secret(config_.node, id, until_ns)) told_id_ = id;
  if (!now.lacks_next) return {};
  return Error(Code::kAccess,
               fmt::format("the secret of volume {} is being changed, and {}/{} is not the next "
                           "one: a copy of it has to come from where the change began",
                           config_.volume, store_, kNextSecretFile));
}

std::uint64_t SecretKeeper::step() {
  const Status looked = look();
  tell(looked ? std::string() : describe(looked.error()));
  return clock_.boot_ns() + kLookNs;
}

}  // namespace kvsyncfs
