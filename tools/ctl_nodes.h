// What `kvsyncfs-ctl STORE nodes` prints. Pure. Thread: values.
#pragma once

#include <string>
#include <vector>

#include "engine/cluster_nodes.h"
#include "engine/format/cluster_config.h"

namespace kvsyncfs {

/// One line per node; the one that `config` is of has a star.
std::string nodes_table(const ClusterConfig& config, const std::vector<ClusterNode>& nodes);
/// One line.
std::string nodes_json(const ClusterConfig& config, const std::vector<ClusterNode>& nodes);

}  // namespace kvsyncfs
