#include "engine/policy/placement.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace kvsyncfs {
namespace {

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014): every bit of the input moves half the bits of the result.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// In (0, 1), never an end of it: 52 bits and a half fit a double.
double draw(std::uint64_t group, NodeId node) {
  const std::uint64_t bits = mix(mix(group) ^ node.value) >> 12;
  return std::ldexp(static_cast<double>(bits) + 0.5, -52);
}

struct Scored {
  const Candidate* candidate = nullptr;
  double score = 0;
  std::size_t round = 0;  ///< how many holders its rack has when it is its turn
};

bool is_better(const Scored& a, const Scored& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.candidate->node < b.candidate->node;
}

std::vector<Scored> by_score(std::uint64_t group, std::span<const Candidate> candidates) {
  std::vector<Scored> scored;
  for (const Candidate& candidate : candidates) {
    if (!(candidate.weight > 0) || !std::isfinite(candidate.weight)) continue;
    scored.push_back({&candidate, -candidate.weight / std::log(draw(group, candidate.node)), 0});
  }
  std::sort(scored.begin(), scored.end(), is_better);
  return scored;
}

}  // namespace

double placement_weight(std::uint64_t capacity_bytes, std::uint64_t free_bytes) {
  constexpr std::uint64_t kFullShare = 50;
  if (free_bytes < capacity_bytes / kFullShare) return 0;
  return std::ldexp(static_cast<double>(capacity_bytes), -30);
}

std::vector<NodeId> choose_holders(std::uint64_t group, std::span<const Candidate> candidates,
                                   std::size_t replicas, NodeId owner) {
  if (replicas == 0) return {};
  std::unordered_map<std::string_view, std::size_t> holders_in;  // of each rack, so far
  for (const Candidate& candidate : candidates)
    if (candidate.node == owner) ++holders_in[candidate.rack];
  std::vector<Scored> others = by_score(group, candidates);
  std::erase_if(others, [&](const Scored& other) { return other.candidate->node == owner; });
  for (Scored& other : others) other.round = holders_in[other.candidate->rack]++;
  std::stable_sort(others.begin(), others.end(),
                   [](const Scored& a, const Scored& b) { return a.round < b.round; });

  std::vector<NodeId> holders{owner};
  for (const Scored& other : others) {
    if (holders.size() == replicas) break;
    holders.push_back(other.candidate->node);
  }
  return holders;
}

NodeId choose_new_holder(std::uint64_t group, std::span<const Candidate> candidates,
                         std::span<const NodeId> holders) {
  const auto holds = [&](const Candidate& candidate) {
    return std::find(holders.begin(), holders.end(), candidate.node) != holders.end();
  };
  std::unordered_map<std::string_view, std::size_t> holders_in;  // of each rack
  for (const Candidate& candidate : candidates)
    if (holds(candidate)) ++holders_in[candidate.rack];
  std::vector<Scored> others = by_score(group, candidates);
  std::erase_if(others, [&](const Scored& other) { return holds(*other.candidate); });
  for (Scored& other : others) other.round = holders_in[other.candidate->rack];
  const auto best =  // the first of those
      std::min_element(others.begin(), others.end(),
                       [](const Scored& a, const Scored& b) { return a.round < b.round; });
  return best == others.end() ? NodeId{} : best->candidate->node;
}

}  // namespace kvsyncfs
