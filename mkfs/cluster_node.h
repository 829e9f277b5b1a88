// A node of a cluster on the command line: what the host adds to the options, and what mkfs tells
// of the node that it made. Thread: one.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "engine/env/disk.h"
#include "mkfs/mkfs_options.h"

namespace kvsyncfs {

inline constexpr int kNodePort = 7420;

/// Fills in what was not given: the host's name, its first address that is not loopback; reads the
/// secret; makes the paths of files that the daemon will read absolute. Errors: kInvalid (the host
/// has no name or address that fits; no secret in its file), those of reading the secret.
Status complete_cluster(Disk& disk, ClusterOptions& cluster);

/// The command that makes the next node, for a shell, with FILE and STORE for its reader to fill
/// in.
std::string next_node_command(const ClusterOptions& cluster);

}  // namespace kvsyncfs
