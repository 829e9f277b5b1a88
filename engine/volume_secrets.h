// By which secrets a node proves itself, and accepts others: the volume's, and while that is being
// changed the next one as well. The volume's record in etcd says what there is, by checks that tell
// nothing of the secrets; the secrets lie in the store's files `secret` and `secret.next`, into
// which nobody but an administrator brings one from outside. kvsyncfs-protocol(7), "Secret".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/volume_record_store.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/format/cluster_config.h"

namespace kvsyncfs {

struct KnownSecrets {
  std::vector<std::string> secrets;  ///< the newest first: one or two
  bool lacks_next = false;           ///< there is another one to come, which the store has not got
  bool is_over = false;              ///< a change has ended: `secret.next` is to be `secret`
};

/// What the store knows by that record. Errors: kAccess (neither file has the volume's), those of
/// reading `secret`.
Result<KnownSecrets> look_at_secrets(Disk& disk, const std::string& store,
                                     const ClusterConfig& config, const VolumeRecord& record);
/// The same; where a change has ended the file is moved. Thread: one in a store. Errors: also those
/// of Disk.
Result<KnownSecrets> settle_secrets(Disk& disk, const std::string& store,
                                    const ClusterConfig& config, const VolumeRecord& record);

/// Follows the changes of a volume's secret while its node runs. Thread: one.
class SecretKeeper {
 public:
  using Apply = std::function<void(const std::vector<std::string>&)>;
  using Warn = std::function<void(std::string_view)>;

  /// All borrowed; `known`: what apply() was given last.
  SecretKeeper(Disk& disk, Clock& clock, etcd::EtcdClient& client, std::string store,
               const ClusterConfig& config, std::vector<std::string> known, Apply apply, Warn warn);

  /// Looks at etcd and at the files; returns when the next look is due.
  std::uint64_t step();

 private:
  Status look();
  void tell(std::string line);  ///< once, until another one comes

  Disk& disk_;
  Clock& clock_;
  const std::string store_;
  const ClusterConfig config_;
  VolumeRecordStore records_;
  std::vector<std::string> known_;
  const Apply apply_;
  const Warn warn_;
  std::uint64_t told_id_ = 0;  ///< in etcd
  std::string told_;
};

}  // namespace kvsyncfs
