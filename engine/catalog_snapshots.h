// Gives this node's catalog to nodes that cannot follow the log from where they are. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "engine/catalog/snapshot.h"
#include "engine/env/clock.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

class CatalogSnapshots {
 public:
  /// All borrowed; it goes before the catalog.
  CatalogSnapshots(Catalog& catalog, EtcdLog& log, Clock& clock)
      : catalog_(catalog), log_(log), clock_(clock) {}

  /// Answers kOpenSnapshot and kReadSnapshot. One snapshot a node: the next takes its place.
  /// Errors: kBusy (this node does not have that position yet), kStale (no such snapshot any more),
  /// kCorrupt (the request), those of the catalog and of EtcdLog::freeze.
  Result<Answer> answer(const Incoming& request);

  /// Lets go what nobody has asked for lately. Call now and then.
  void drop_idle();

 private:
  struct Given {
    std::uint64_t id = 0;
    std::shared_ptr<const CatalogSnapshot> snapshot;  // shared: a reader keeps it to its end
    std::uint64_t used_ns = 0;
  };
  Result<Answer> open(const Incoming& request);
  Result<Answer> read(const Incoming& request);

  Catalog& catalog_;
  EtcdLog& log_;
  Clock& clock_;
  std::mutex mutex_;  // a leaf; guards the rest
  std::map<NodeId, Given> given_;
  std::uint64_t last_id_ = 0;
};

}  // namespace kvsyncfs
