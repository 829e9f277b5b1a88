// Decides which nodes hold the copies of a group of segments: weighted rendezvous hashing.
//
// Every node draws a number for every group, the same wherever it is computed, and the highest
// scores win: -weight / ln(draw). A node so wins groups in proportion to its weight, one that comes
// takes from the others only what it wins, one that goes leaves only what it had, and nothing has
// to be stored or agreed on. Sources: Thaler and Ravishankar, "Using name-based mappings to
// increase hit rates", 1998; Schindelhauer and Schomaker, "Weighted distributed hash tables", 2005
// (the logarithmic method). A heuristic: whoever asks keeps the answer with the data, so another
// one costs balance and never correctness. Pure. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"

namespace kvsyncfs {

struct Candidate {
  NodeId node;
  std::string_view rack;  ///< what fails together; those that tell none count as one
  double weight = 0;      ///< share that it should get, of any unit; not above 0: it gets nothing
};

/// Weight of a store of that size: its capacity in GiB, or 0 when less than a fiftieth of it is
/// free.
double placement_weight(std::uint64_t capacity_bytes, std::uint64_t free_bytes);

/// The holders of a group, at most `replicas` and no node twice: first the owner, who has the bytes
/// in any case, whatever its weight; then those of the highest scores, where a rack that has fewer
/// of the holders comes before one that has more. Fewer than `replicas` if there are not so many.
/// The order of `candidates` does not matter. With one node more, at most one holder is another
/// one: the new node. Requires that no node is there twice. Source: see above.
std::vector<NodeId> choose_holders(std::uint64_t group, std::span<const Candidate> candidates,
                                   std::size_t replicas, NodeId owner);

/// Who is to hold a copy more of what `holders` have: none of them; in a rack that has the fewest
/// of them, the one of the highest score of the group. 0: there is nobody. What one node leaves
/// behind so comes to all others, if each of its segments is a group. Requires as above.
NodeId choose_new_holder(std::uint64_t group, std::span<const Candidate> candidates,
                         std::span<const NodeId> holders);

}  // namespace kvsyncfs
