#include "engine/cluster/cuts.h"

#include <algorithm>

namespace kvsyncfs {
namespace {

/// A member whose beat stood still for longer is not counted, nor is what was seen before a pause
/// of that length.
constexpr std::uint64_t kSilenceNs = 3'000'000'000;

bool names(const Member& member, NodeId node) {
  return std::binary_search(member.unreached.begin(), member.unreached.end(), node);
}

}  // namespace

std::set<NodeId> who_gives_way(std::set<Cut> cuts) {
  std::set<NodeId> leaving;
  while (!cuts.empty()) {
    std::map<NodeId, std::size_t> counts;
    for (const auto& [low, high] : cuts) ++counts[low], ++counts[high];
    const auto most =
        std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second, a.first) < std::pair(b.second, b.first);
        });
    const NodeId node = most->first;
    leaving.insert(node);
    std::erase_if(cuts, [node](const Cut& c) { return c.first == node || c.second == node; });
  }
  return leaving;
}

bool CutJudge::concerns(const ClusterMap& map, const Member& self) {
  return std::any_of(map.members.begin(), map.members.end(), [&self](const Member& member) {
    return member.id != self.id && (names(member, self.id) || names(self, member.id));
  });
}

void CutJudge::hear(const ClusterMap& map, std::uint64_t now_ns) {
  std::map<NodeId, Heard> heard;
  for (const Member& member : map.members) {
    Heard now{member.incarnation, member.beat, 0};
    const auto before = heard_.find(member.id);
    if (before != heard_.end() && before->second.incarnation == now.incarnation)
      now.at_ns = before->second.beat == now.beat ? before->second.at_ns : now_ns;
    heard[member.id] = now;
  }
  heard_ = std::move(heard);
}

bool CutJudge::lives(NodeId node, std::uint64_t now_ns) const {
  const auto heard = heard_.find(node);
  if (heard == heard_.end()) return false;
  return node == self_ || (heard->second.at_ns != 0 && now_ns - heard->second.at_ns <= kSilenceNs);
}

bool CutJudge::look(const ClusterMap& map, std::uint64_t now_ns) {
  if (now_ns - looked_ns_ > kSilenceNs) {
    heard_.clear();
    since_ns_.clear();
  }
  looked_ns_ = now_ns;
  hear(map, now_ns);
  std::set<Cut> cuts;
  for (const Member& member : map.members)
    for (const NodeId other : member.unreached)
      if (other != member.id && lives(member.id, now_ns) && lives(other, now_ns))
        cuts.insert(std::minmax(member.id, other));
  std::map<Cut, std::uint64_t> since_ns;
  bool is_time = false;
  for (const Cut& cut : cuts) {
    const auto before = since_ns_.find(cut);
    const std::uint64_t since = before == since_ns_.end() ? now_ns : before->second;
    since_ns[cut] = since;
    const bool is_own = cut.first == self_ || cut.second == self_;
    is_time = is_time || (is_own && now_ns - since >= patience_ns_);
  }
  since_ns_ = std::move(since_ns);
  return is_time && who_gives_way(std::move(cuts)).contains(self_);
}

}  // namespace kvsyncfs
