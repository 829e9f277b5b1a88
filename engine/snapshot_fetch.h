// Brings a whole catalog from a peer into a folder of its own. Thread: one; not the transport's
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/catalog/snapshot.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

struct FetchedCatalog {
  Position position;
  AppliedBatch batch;  ///< the last of the log that is in it; index 0: not told
  std::uint64_t records = 0, bytes = 0;
};

class SnapshotFetch {
 public:
  /// All borrowed. `into`: a catalog's options with the folder that is to be made. No request to
  /// the peer takes longer than `timeout_ns`. `tell`: one line now and then, of how far it is.
  SnapshotFetch(Transport& transport, Clock& clock, Disk& disk, const CatalogOptions& into,
                std::uint64_t timeout_ns, const std::function<void(std::string_view)>& tell)
      : transport_(transport),
        clock_(clock),
        disk_(disk),
        into_(into),
        timeout_ns_(timeout_ns),
        tell_(tell) {}

  /// A catalog of `at_least` that position. After a failure the folder holds nothing of use.
  /// Errors: those of Transport::call, of the peer (kBusy: it is still starting), and of
  /// CatalogBuilder.
  Result<FetchedCatalog> from(NodeId peer, Position at_least);

 private:
  Status fetch_records(NodeId peer, std::uint64_t snapshot, std::uint64_t estimated_records,
                       CatalogBuilder& builder, FetchedCatalog& fetched);

  Transport& transport_;
  Clock& clock_;
  Disk& disk_;
  const CatalogOptions& into_;
  const std::uint64_t timeout_ns_;
  const std::function<void(std::string_view)>& tell_;
};

}  // namespace kvsyncfs
