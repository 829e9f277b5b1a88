// A catalog that cannot follow the log any more is replaced by that of a node that can, before this
// node joins. ARCHITECTURE.md, "Who is too late takes a catalog".
#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "engine/catalog_folder.h"
#include "engine/engine_impl.h"
#include "engine/format/peer_message.h"
#include "engine/node_generation.h"
#include "engine/snapshot_fetch.h"

namespace kvsyncfs {

namespace {
constexpr std::uint64_t kAskAgainNs = 500'000'000;
}  // namespace

/// The marker comes before the look, so what is there then stays until this node is a member.
Status EngineImpl::reach_log() {
  KVSYNCFS_ASSIGN(const std::string spare, spare_catalog_folder(disk_, options_.store));
  KVSYNCFS_TRY(remove_catalog(disk_, spare));
  KVSYNCFS_TRY(start_transport());
  const std::uint64_t until_ns = clock_.boot_ns() + options_.timeout_ns;
  KVSYNCFS_TRY(cluster_->durable.keep(cluster_->seams.node_name, cluster_->log.lease(),
                                      catalog_->applied(), until_ns));
  cluster_->keeps_log = true;
  KVSYNCFS_ASSIGN(const Position trimmed, cluster_->durable.trimmed(until_ns));
  KVSYNCFS_ASSIGN(const bool doubted, is_catalog_doubted(disk_, options_.store));
  const bool has_catalog = cluster_->seams.has_catalog;
  if (trimmed <= catalog_->applied() && !doubted && has_catalog) return {};
  options_.warn(doubted ? "the catalog of this store was found wrong: taking that of another node"
                : !has_catalog
                    ? "the log of the volume began anew: taking the catalog of another node"
                    : fmt::format("the log of the volume begins after position {}, the catalog "
                                  "of this store ends at {}: taking that of another node",
                                  trimmed.value, catalog_->applied().value));
  return fetch_catalog(trimmed);
}

/// As long as peers come up one of them may have it. What was begun with one and failed begins anew
/// with the next.
Status EngineImpl::fetch_catalog(Position trimmed) {
  CatalogOptions into = catalog_options(options_.store, memory_bytes());
  KVSYNCFS_ASSIGN(into.directory, spare_catalog_folder(disk_, options_.store));
  std::string why = "no other node is up";
  std::mutex mutex;
  std::condition_variable never;
  for (const Deadline until = deadline(); !until.is_over();) {
    KVSYNCFS_ASSIGN(const auto fetched, fetch_from_peers(into, trimmed, &why));
    if (fetched) return take_catalog(*fetched);
    std::unique_lock lock(mutex);
    Deadline(clock_, kAskAgainNs).wait(never, lock, [] { return false; });
  }
  return Error(Code::kStale,
               "the catalog of this store can be used no more, and no other node gives "
               "its own: " +
                   why + "; mount one that was up longer first");
}

/// Nothing: none of those that are up could give it; `why` tells of one.
Result<std::optional<FetchedCatalog>> EngineImpl::fetch_from_peers(const CatalogOptions& into,
                                                                   Position trimmed,
                                                                   std::string* why) {
  ClusterSeams& seams = cluster_->seams;
  KVSYNCFS_TRY(cluster_->membership.refresh(clock_.boot_ns() + options_.timeout_ns / 3));
  const auto map = cluster_->membership.map();
  for (const Member& member : map->members) {
    if (member.id == seams.node) continue;
    auto& known = cluster_->addresses[member.id];
    if (known != member.addresses)
      KVSYNCFS_TRY(seams.transport.set_peer(member.id, member.addresses));
    known = member.addresses;
    const std::uint64_t begun_ns = clock_.boot_ns();
    SnapshotFetch fetch(seams.transport, clock_, ballast_.guarded(), into, options_.timeout_ns / 3,
                        options_.warn);
    const auto fetched = fetch.from(member.id, trimmed);
    if (!fetched) {
      *why = fmt::format("node {}: {}", member.name, describe(fetched.error()));
      continue;
    }
    options_.warn(
        fmt::format("the catalog of node {} at position {} is here: {} records, {} bytes, "
                    "{} ms",
                    member.name, fetched->position.value, fetched->records, fetched->bytes,
                    (clock_.boot_ns() - begun_ns) / 1'000'000));
    return std::optional(*fetched);
  }
  return std::optional<FetchedCatalog>();
}

/// It is durable in the spare folder. Where the store notes another log than the present one, it
/// notes that before it trusts the catalog: a crash between makes the next mount take one again.
Status EngineImpl::take_catalog(const FetchedCatalog& fetched) {
  const bool has_catalog = cluster_->seams.has_catalog;
  if (!has_catalog) KVSYNCFS_TRY(doubt_catalog());
  KVSYNCFS_ASSIGN(const std::string former, catalog_folder(disk_, options_.store));
  KVSYNCFS_TRY(swap_catalog_folders(disk_, options_.store));
  KVSYNCFS_ASSIGN(const std::string present, catalog_folder(disk_, options_.store));
  KVSYNCFS_TRY(catalog_->reopen(present));
  KVSYNCFS_TRY(mark_log(fetched.batch));
  if (!has_catalog) {
    StoreGeneration follows;
    follows.volume_tag = superblock_.volume_tag();
    follows.generation = cluster_->seams.generation;
    KVSYNCFS_TRY(store_generation(ballast_.guarded(), options_.store, follows));
  }
  KVSYNCFS_TRY(trust_catalog_folder(disk_, options_.store));
  return remove_catalog(disk_, former);
}

/// What the segments' server does not know. Only a node that serves has a catalog to give.
Result<Answer> EngineImpl::answer_peer(const Incoming& request) {
  const auto kind = static_cast<PeerRequest>(request.kind);
  if (kind != PeerRequest::kOpenSnapshot && kind != PeerRequest::kReadSnapshot)
    return Error(Code::kUnsupported, fmt::format("request of kind {}", request.kind));
  if (!serving_ || failed_) return Error(Code::kBusy, "this node is not serving");
  return cluster_->snapshots.answer(request);
}

/// Called by the transport's loop.
Status EngineImpl::judge_catalog(NodeId peer, const Acknowledge& message) {
  if (message.history_position.value == 0) return {};
  const HistoryDigest theirs{message.history_position, message.history_digest};
  switch (cluster_->judge.hear(peer, theirs, *catalog_)) {
    case CatalogJudge::Verdict::kNone:
      return {};
    case CatalogJudge::Verdict::kOwnIsWrong:
      cluster_->catalogs_differ = false;
      cluster_->catalog_is_wrong = true;
      return {};
    case CatalogJudge::Verdict::kOpen:
      cluster_->catalogs_differ = true;
      return {};
    case CatalogJudge::Verdict::kOtherIsWrong:
      cluster_->catalogs_differ = false;
      break;
  }
  return Error(Code::kFenced,
               fmt::format("the catalog of node {} is not that of most nodes since position {}",
                           peer.value, theirs.position.value));
}

Status EngineImpl::doubt_catalog() {
  return doubt_catalog_folder(ballast_.guarded(), options_.store);
}

}  // namespace kvsyncfs
