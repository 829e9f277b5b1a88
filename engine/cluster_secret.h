// Another secret for a volume while its nodes are up, by a program that has only a store of it.
// Each step changes etcd in one transaction, or nothing, and may be repeated after whatever
// failure. What nodes make of it: volume_secrets.h. Thread: one.
//
// Errors of every call: kNotFound (no store of a cluster, no such volume), kAccess (the store's
// secret is not the volume's), kBusy (somebody else changes the volume), kTimeout (within
// kEtcdTimeoutNs; it may have happened), other errors of etcd with its endpoints in front, of Disk.
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/env/random.h"

namespace kvsyncfs {

namespace etcd {
class EtcdClient;
}

struct SecretChange {
  struct Node {
    std::string name;
    bool is_up = false;
    bool has_next = false;  ///< so it told when it was up last
  };
  std::string volume, file;  ///< that has the next secret
  std::vector<Node> nodes;
};

/// From its return on nodes prove themselves by the next secret where both have it, and accept
/// either. Draws it into STORE/secret.next, from where it has to be copied to the other stores.
/// Where a change is under way only tells how far that is. Errors: also kNotFound (one is under way
/// whose secret the store has not got).
Result<SecretChange> begin_secret_change(Disk& disk, Clock& clock, Random& random,
                                         const std::string& store);
/// The next secret is the only one from now on: nodes that run accept no other within seconds, and
/// keep the connections that they have. Errors: also kNotFound (no change is under way, or the
/// store has not got its secret), kBusy (nodes that are up have not got it, by name).
Result<SecretChange> finish_secret_change(Disk& disk, Clock& clock, const std::string& store);
/// All stays as it was. Errors: also kNotFound (no change is under way).
Status cancel_secret_change(Disk& disk, Clock& clock, const std::string& store);

// The same, with a client that is there.
Result<SecretChange> begin_secret_change(Disk& disk, Clock& clock, Random& random,
                                         etcd::EtcdClient& client, const std::string& store);
Result<SecretChange> finish_secret_change(Disk& disk, Clock& clock, etcd::EtcdClient& client,
                                          const std::string& store);
Status cancel_secret_change(Disk& disk, Clock& clock, etcd::EtcdClient& client,
                            const std::string& store);

}  // namespace kvsyncfs
