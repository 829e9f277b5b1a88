// Sizes on a command line and in mount options. Pure. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace kvsyncfs {

/// Bytes, or a share of something.
struct SizeText {
  std::uint64_t bytes = 0;    ///< 0: `percent` counts
  std::uint32_t percent = 0;  ///< 1 to 100

  std::uint64_t of(std::uint64_t whole) const {
    return bytes != 0 ? bytes : whole / 100 * percent + whole % 100 * percent / 100;
  }
};

/// "1073741824", "512M", "1.5g", "2TiB" (powers of 1024) or "50%"; more than nothing. Errors:
/// kInvalid.
Result<SizeText> parse_size_text(std::string_view text);

/// "1.5 GiB"; rounded down.
std::string size_for_people(std::uint64_t bytes);

}  // namespace kvsyncfs
