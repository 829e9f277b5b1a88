// The command line of mkfs.kvsyncfs. Pure. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/size_text.h"
#include "engine/cluster_store.h"

namespace kvsyncfs {

/// A store that becomes a node of a cluster.
struct ClusterOptions {
  ClusterFormat format;     ///< without the secret; node and listen may be empty: the host's
  std::string address;      ///< of etcd, as it was given
  std::string secret_file;  ///< of a join
};

struct MkfsOptions {
  std::string store;
  SizeText size{0, 80};  ///< of the free space, if it is a share
  bool size_given = false;
  std::string label;
  std::optional<Uuid> uuid;
  std::optional<ClusterOptions> cluster;
  bool force = false, quiet = false, help = false, version = false;
};

/// `arguments` without the program's name. Errors: kInvalid, naming the option.
Result<MkfsOptions> parse_mkfs_options(std::vector<std::string> arguments);

std::string mkfs_help();

}  // namespace kvsyncfs
