// Opens a store for use, whatever it is: one of a lone node, or a node of a cluster with its
// connections to etcd and to the other nodes. Thread: one.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace kvsyncfs {

struct ClusterMount {
  std::string listen;   ///< "address:port" in place of the store's own; empty: that one
  std::string version;  ///< of the program, for the other nodes' people
  std::uint64_t log_size_bytes = 1u << 30;  ///< of the log's entries in etcd
  /// Files in PEM for TLS between nodes, all or none: of this node, and of the authority of all.
  std::string tls_certificate = {}, tls_key = {}, tls_authority = {};
};

class OpenStore {
 public:
  virtual ~OpenStore() = default;
  virtual Engine& engine() = 0;
  virtual bool is_clustered() const = 0;
  /// As store_uuid().
  virtual std::string uuid() const = 0;
};

/// The UUID that no other store has, as text: nodes share that of their volume, so of a node it is
/// the one in its file `cluster`. Errors: those of Engine::superblock() and read_cluster_config().
Result<std::string> store_uuid(Disk& disk, const std::string& store);

/// The seams outlive what is returned; so does the store's lock, which the caller holds. Close the
/// engine before it is destroyed. Errors: those of Engine::open; of a cluster also kNotFound (no
/// such volume or node in etcd), kStale (the node is another store), kTimeout, kAccess,
/// kUnreachable, kBusy (somebody listens there, or the node lives elsewhere), kUnsupported (a
/// read-only mount).
Result<std::unique_ptr<OpenStore>> open_store(Disk& disk, Clock& clock, Random& random,
                                              EngineOptions options, const ClusterMount& mount);

}  // namespace kvsyncfs
