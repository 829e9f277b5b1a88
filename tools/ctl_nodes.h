// What `kvsyncfs-ctl STORE nodes` prints. Pure. Thread: values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/cluster_nodes.h"
#include "engine/format/cluster_config.h"

namespace kvsyncfs {

/// Segments that nodes still hold which are drained; of one that is not in it nobody could tell.
using SegmentsLeft = std::map<NodeId, std::uint64_t>;

/// One line per node; the one that `config` is of has a star.
std::string nodes_table(const ClusterConfig& config, const std::vector<ClusterNode>& nodes,
                        const SegmentsLeft& left = {});
/// One line.
std::string nodes_json(const ClusterConfig& config, const std::vector<ClusterNode>& nodes,
                       const SegmentsLeft& left = {});

}  // namespace kvsyncfs
