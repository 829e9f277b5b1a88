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

  // A snapshot for this node's operator, at the position of one command. One at a time.

  /// The next command to hold segments under that name takes it.
  void expect(const std::string& name);
  /// Such a command of this node is applied. Called between two entries of the log.
  void hold_applied(const std::string& name);
  struct Expected {
    std::uint64_t id = 0;
    Position position;
    std::uint64_t estimated_records = 0;
  };
  /// The one that was taken. Errors: kStale (none was), those of the catalog.
  Result<Expected> expected();
  /// Records behind a key. Errors: kStale (no such snapshot any more), those of the catalog.
  Result<std::string> records(std::uint64_t id, std::string_view after);

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
  std::uint64_t give_locked(NodeId peer, std::shared_ptr<const CatalogSnapshot> snapshot);
  Result<std::string> records_of(NodeId peer, std::uint64_t id, std::string_view after);

  Catalog& catalog_;
  EtcdLog& log_;
  Clock& clock_;
  std::mutex mutex_;               // a leaf; guards the rest
  std::map<NodeId, Given> given_;  // that of node 0 is the operator's
  std::uint64_t last_id_ = 0;
  std::string expected_name_;  // empty: none is expected
  Result<Expected> expected_ = Code::kStale;
};

}  // namespace kvsyncfs
