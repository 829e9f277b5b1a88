// The command line of kvsyncfs-ctl. Pure. Thread: values.
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

enum class CtlCommand {
  kNodes,  ///< asks etcd
};

struct CtlOptions {
  std::string store;
  CtlCommand command = CtlCommand::kNodes;
  bool json = false, help = false, version = false;
};

/// `arguments` without the program's name. Errors: kInvalid, naming the argument.
Result<CtlOptions> parse_ctl_options(std::vector<std::string> arguments);

std::string ctl_help();

}  // namespace kvsyncfs
