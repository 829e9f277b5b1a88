// Whose catalog is right where two differ: the one that most of the nodes that are up have. What
// the others have is told with their acknowledgements. Thread: any; a leaf mutex.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "engine/base/ids.h"
#include "engine/catalog/catalog.h"
#include "engine/format/records.h"

namespace kvsyncfs {

class CatalogJudge {
 public:
  enum class Verdict {
    kNone,          ///< they agree, or there is nothing to compare
    kOtherIsWrong,  ///< more have what this node has
    kOwnIsWrong,    ///< more have what the other one has
    kOpen,          ///< neither has more
  };

  explicit CatalogJudge(NodeId self) : self_(self) {}

  /// `peer` has that digest; `catalog` is this node's. A digest that this node has not come to, or
  /// does not know any more, is nothing to compare.
  Verdict hear(NodeId peer, const HistoryDigest& digest, const Catalog& catalog);

 private:
  const NodeId self_;
  std::mutex mutex_;
  std::map<NodeId, HistoryDigest> heard_;
};

}  // namespace kvsyncfs
