// The command line of mkfs.kvsyncfs. Pure. Thread: one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/size_text.h"

namespace kvsyncfs {

struct MkfsOptions {
  std::string store;
  SizeText size{0, 80};  ///< of the free space, if it is a share
  bool size_given = false;
  std::string label;
  std::optional<std::array<std::uint8_t, 16>> uuid;
  bool force = false, quiet = false, help = false, version = false;
};

/// `arguments` without the program's name. Errors: kInvalid, naming the option.
Result<MkfsOptions> parse_mkfs_options(std::vector<std::string> arguments);

std::string mkfs_help();

}  // namespace kvsyncfs
