// The few names that histories use, so that their calls meet each other.
#pragma once

#include <string>

#include "tests/sim/sim_image.h"

namespace kvsyncfs {

inline constexpr const char* kNames[] = {"a", "b", "c", "d"};
inline constexpr const char* kFolders[] = {"x", "y"};
inline constexpr const char* kKeys[] = {"k", "l", "x/k", "y/l"};
inline constexpr const char* kXattrs[] = {"user.p", "user.q"};
inline constexpr std::uint64_t kWriteSizeMax = 20'000, kOffsetMax = 30'000;

template <std::size_t kCount>
std::string pick(SimRandom& random, const char* const (&words)[kCount]) {
  return words[random.below(kCount)];
}

inline bool is_folder(const std::string& path) {
  return path == kFolders[0] || path == kFolders[1];
}

inline std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace kvsyncfs
