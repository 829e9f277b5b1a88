#include "engine/node_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>

#include "engine/env/deadline.h"
#include "engine/policy/placement.h"

namespace kvsyncfs {
namespace {

/// So long after its start a node waits for others to appear.
constexpr std::uint64_t kFindPeersNs = 5'000'000'000;
/// A holder that failed gets no new segment for so long, whatever its lease says.
constexpr std::uint64_t kShunNs = 3'000'000'000;
/// Whoever needs a node waits for it so long after it went away; later it is gone until it is back.
constexpr std::uint64_t kReturnNs = 2'000'000'000;
/// Segments of one node that lie next to each other in time share their holders.
constexpr std::uint64_t kGroupsPerNode = 64;
/// Of one pull, so that the next ones of a reader that reads on can be on their way meanwhile.
constexpr std::size_t kLoadSizeMax = std::size_t{1} << 20;

}  // namespace

NodeSegments::NodeSegments(const ClusterSeams& seams, Catalog& catalog, SegmentStore& store,
                           Membership& membership, Clock& clock, std::uint64_t volume_tag,
                           std::uint64_t timeout_ns, std::function<void(std::string_view)> warn)
    : seams_(seams),
      catalog_(catalog),
      store_(store),
      membership_(membership),
      clock_(clock),
      made_ns_(clock.boot_ns()),
      warn_(std::move(warn)),
      shipper_(seams.transport, clock, timeout_ns / 3),
      misses_(*this, volume_tag, timeout_ns / 3),
      server_(store, volume_tag, [this](SegmentId segment) { return held_length(segment); }) {}

Result<std::uint64_t> NodeSegments::held_length(SegmentId segment) const {
  KVSYNCFS_ASSIGN(const SegmentRecord record, catalog_.segment(segment));
  const auto& holders = record.holders;
  if (record.state == SegmentState::kSealed &&
      std::find(holders.begin(), holders.end(), seams_.node) != holders.end())
    return record.length;
  return Error(Code::kNotFound, fmt::format("segment {} is none that is held", segment.value));
}

std::vector<Candidate> NodeSegments::candidates(const ClusterMap& map) const {
  std::vector<Candidate> candidates;
  std::lock_guard lock(mutex_);
  const std::uint64_t now_ns = clock_.boot_ns();
  for (const Candidate& candidate : placement_candidates(map)) {
    const auto shunned = shunned_until_ns_.find(candidate.node);
    const bool lives = candidate.node == seams_.node || is_up(candidate.node);
    const bool is_leaving = draining_.contains(candidate.node) && candidate.node != seams_.node;
    const bool is_shunned = shunned != shunned_until_ns_.end() && shunned->second > now_ns;
    if (lives && !is_shunned && !is_leaving) candidates.push_back(candidate);
  }
  return candidates;
}

void NodeSegments::set_draining(std::set<NodeId> nodes) {
  std::lock_guard lock(mutex_);
  draining_ = std::move(nodes);
}

Status NodeSegments::check_room() const {
  return others_are_full_ ? Status(Error(Code::kNoSpace, "the other nodes are full")) : Status{};
}

void NodeSegments::look_at_room() {
  const auto map = membership_.map();
  std::size_t others = 0, roomy = 0;
  for (const Candidate& candidate : candidates(*map)) {
    if (candidate.node == seams_.node) continue;
    ++others;
    if (candidate.weight > 0) ++roomy;
  }
  const std::size_t needed = std::min(seams_.replicas, kHoldersMin) - 1;
  others_are_full_ = others >= needed && roomy < needed;
}

/// Each segment goes its own way: all nodes share the work of making the copies anew.
NodeId NodeSegments::place_copy(SegmentId segment, const std::vector<NodeId>& holders) {
  const auto map = membership_.map();
  return choose_new_holder(segment.value, candidates(*map), holders);
}

/// Right after the mount the other nodes are still being found: then it waits for them. Nobody
/// tells of them; the wait itself looks often enough.
std::vector<NodeId> NodeSegments::new_holders(std::size_t needed) {
  std::uint64_t group = 0;
  {
    std::lock_guard lock(mutex_);
    group = seams_.node.value * kGroupsPerNode + opened_++ % kGroupsPerNode;
  }
  std::vector<NodeId> holders;
  const auto enough = [&] {
    const auto map = membership_.map();
    holders = choose_holders(group, candidates(*map), seams_.replicas, seams_.node);
    return holders.size() >= needed;
  };
  const std::uint64_t now_ns = clock_.boot_ns(), found_ns = made_ns_ + kFindPeersNs;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  Deadline(clock_, found_ns > now_ns ? found_ns - now_ns : 0).wait(never, lock, enough);
  return holders;
}

Result<OpenPlacedSegmentCommand> NodeSegments::place() {
  const std::size_t needed = std::min(seams_.replicas, kHoldersMin);
  const auto holders = new_holders(needed);
  {
    std::lock_guard lock(mutex_);
    lacking_ = seams_.replicas - std::min(seams_.replicas, holders.size());
  }
  if (holders.size() < needed)
    return Error(Code::kUnreachable,
                 fmt::format("a new segment needs {} holders, {} live", needed, holders.size()));
  return OpenPlacedSegmentCommand{seams_.node, holders};
}

Result<std::vector<NodeId>> NodeSegments::other_holders(SegmentId segment) const {
  KVSYNCFS_ASSIGN(const SegmentRecord record, catalog_.segment(segment));
  std::vector<NodeId> others = record.holders;
  std::erase(others, seams_.node);
  return others;
}

StoreOptions::Shipment NodeSegments::ship(SegmentId segment, std::uint64_t page,
                                          std::span<const Bytes> pieces) {
  const auto holders = other_holders(segment);
  if (!holders) return [why = holders.error()]() -> Status { return why; };
  return shipper_.ship(segment, page, pieces, *holders,
                       [this](NodeId node, const Error& why) { lost(node, why); });
}

void NodeSegments::lost(NodeId node, const Error& why) {
  // It was away and is back: what it had open is not written there any more, and new ones can be.
  if (why.code == Code::kStale) return;
  warn_(fmt::format("node {} gets no new segments for a while: {}", node.value, describe(why)));
  std::lock_guard lock(mutex_);
  shunned_until_ns_[node] = clock_.boot_ns() + kShunNs;
}

void NodeSegments::note_peer(const PeerEvent& event) {
  if (!event.is_up)
    warn_(fmt::format("node {} is not reached: {}", event.node.value, describe(event.why)));
  {
    std::lock_guard lock(mutex_);
    const auto [contact, is_new] = contacts_.try_emplace(event.node);
    if (is_new || contact->second.is_up != event.is_up)
      contact->second = {event.is_up, clock_.boot_ns()};
  }
  contacts_changed_.notify_all();
}

bool NodeSegments::is_down(NodeId node) const {
  std::lock_guard lock(mutex_);
  return !is_up(node);
}

bool NodeSegments::is_up(NodeId node) const {
  const auto contact = contacts_.find(node);
  return contact != contacts_.end() && contact->second.is_up;
}

bool NodeSegments::await_return(const std::vector<NodeId>& nodes) {
  std::unique_lock lock(mutex_);
  const std::uint64_t now_ns = clock_.boot_ns();
  std::uint64_t end_ns = now_ns;
  for (const NodeId node : nodes) {
    const auto contact = contacts_.find(node);
    if (contact != contacts_.end()) end_ns = std::max(end_ns, contact->second.since_ns + kReturnNs);
  }
  const Deadline deadline(clock_, end_ns - now_ns);
  return deadline.wait(contacts_changed_, lock, [&] {
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return is_up(node); });
  });
}

std::string NodeSegments::degraded() const {
  std::lock_guard lock(mutex_);
  if (lacking_ == 0) return {};
  return fmt::format("new segments have {} of {} holders", seams_.replicas - lacking_,
                     seams_.replicas);
}

Result<std::size_t> NodeSegments::Misses::load_some(SegmentId segment, std::uint64_t page,
                                                    MutableBytes out) {
  SegmentStore& store = segments_.store_;
  Result<std::size_t> loaded = Code::kNotFound;
  if (store.file(segment)) loaded = store.load_pages(segment, page, out);
  if (loaded) return loaded;
  const auto holders = segments_.other_holders(segment);
  if (!holders || holders->empty()) return loaded;
  auto pulled = puller_.pull(segment, page, out, *holders);
  const bool is_away = !pulled && (pulled.error().code == Code::kUnreachable ||
                                   pulled.error().code == Code::kDisconnected);
  if (is_away && segments_.await_return(*holders))
    pulled = puller_.pull(segment, page, out, *holders);
  if (!pulled) return pulled;
  pulled_pages_.fetch_add(*pulled, std::memory_order_relaxed);
  return pulled;
}

Status NodeSegments::Misses::load(SegmentId segment, std::uint64_t offset, MutableBytes out) {
  SegmentStore& store = segments_.store_;
  if (store.file(segment) && store.read(segment, offset, out)) return {};
  AlignedBuffer buffer;
  while (!out.empty()) {
    const std::size_t in_page = offset % kPageSize;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(out.data()) % kPageSize == 0;
    if (is_aligned && in_page == 0 && out.size() >= kPageSize) {
      const std::size_t whole = std::min(out.size() - out.size() % kPageSize, kLoadSizeMax);
      KVSYNCFS_ASSIGN(const std::size_t count,
                      load_some(segment, offset / kPageSize, out.first(whole)));
      out = out.subspan(count * kPageSize);
      offset += count * kPageSize;
      continue;
    }
    const std::size_t wanted =
        std::min<std::size_t>(round_up(in_page + out.size(), kPageSize), kLoadSizeMax);
    if (buffer.bytes().empty()) buffer = AlignedBuffer(wanted);
    const MutableBytes pages = buffer.bytes().first(wanted);
    KVSYNCFS_ASSIGN(const std::size_t count, load_some(segment, offset / kPageSize, pages));
    const std::size_t size = std::min(out.size(), count * kPageSize - in_page);
    std::memcpy(out.data(), pages.data() + in_page, size);
    out = out.subspan(size);
    offset += size;
  }
  return {};
}

}  // namespace kvsyncfs
