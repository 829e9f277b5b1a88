// The command line of fsck.kvsyncfs. Pure. Thread: one.
#pragma once

#include <string>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

struct FsckOptions {
  std::string store;
  bool repair = false, scrub = false, json = false, quiet = false, help = false, version = false;
};

/// `arguments` without the program's name. What fsck(8) hands to every checker is understood: -a,
/// -p and -y repair, -n does not, -f, -v and -C mean nothing here. Errors: kInvalid, naming the
/// option.
Result<FsckOptions> parse_fsck_options(std::vector<std::string> arguments);

std::string fsck_help();

}  // namespace kvsyncfs
