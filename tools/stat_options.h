// The command line of kvsyncfs-stat. Pure. Thread: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

struct StatOptions {
  std::string path;  ///< a mount, something on it, or a store
  bool json = false;
  std::optional<std::uint64_t> watch_ns;  ///< interval; not set: one answer and done
  bool hit_rate = false;
  std::optional<double> threshold;  ///< share, 0 to 1
  std::optional<std::uint64_t> window_ns;
  bool qp = false, model = false;
  bool help = false, version = false;
};

/// `arguments` without the program's name. Errors: kInvalid, naming the argument.
Result<StatOptions> parse_stat_options(std::vector<std::string> arguments);

/// "95%" or "95" as 0.95. A bare number between 0 and 1 could mean either and is refused.
/// Errors: kInvalid.
Result<double> parse_percent(std::string_view text);
/// "5" or "0.5" seconds within [min_ns, max_ns]. Errors: kInvalid.
Result<std::uint64_t> parse_seconds(std::string_view text, std::uint64_t min_ns,
                                    std::uint64_t max_ns);

std::string stat_help();

}  // namespace kvsyncfs
