#include "engine/catalog_judge.h"

#include <cstddef>

namespace kvsyncfs {

CatalogJudge::Verdict CatalogJudge::hear(NodeId peer, const HistoryDigest& digest,
                                         const Catalog& catalog) {
  const auto sessions = catalog.sessions();
  const auto own = catalog.history_at(digest.position);
  std::lock_guard lock(mutex_);
  heard_[peer] = digest;
  if (!own || *own == digest.digest) return Verdict::kNone;
  std::size_t like_own = 1, like_peer = 0;
  for (const auto& [node, heard] : heard_) {
    const auto session = sessions.find(node);
    const bool lives = session != sessions.end() && session->second.lives();
    if (node == self_ || !lives || heard.position != digest.position) continue;
    if (heard.digest == *own) ++like_own;
    if (heard.digest == digest.digest) ++like_peer;
  }
  if (like_own > like_peer) return Verdict::kOtherIsWrong;
  return like_own < like_peer ? Verdict::kOwnIsWrong : Verdict::kOpen;
}

}  // namespace kvsyncfs
