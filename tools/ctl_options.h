// The command line of kvsyncfs-ctl. Pure. Thread: values.
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

enum class CtlCommand {
  kNodes,   ///< asks etcd
  kRemove,  ///< changes etcd
  kFlush,   ///< asks the daemon, as the next ones
  kLocate,
};

struct CtlOptions {
  std::string store;  ///< or its mount
  CtlCommand command = CtlCommand::kNodes;
  std::string argument;  ///< PATH or NODE, of a command that takes one
  bool json = false, help = false, version = false;
};

/// `arguments` without the program's name. Errors: kInvalid, naming the argument.
Result<CtlOptions> parse_ctl_options(std::vector<std::string> arguments);

std::string ctl_help();

}  // namespace kvsyncfs
