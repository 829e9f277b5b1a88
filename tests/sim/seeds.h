// How many runs a simulation makes, and where it begins.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace kvsyncfs {

struct Seeds {
  std::uint64_t begin = 0, end = 0;
};

/// `count` seeds from `first` on; KVSYNCFS_SIM_SEED and KVSYNCFS_SIM_SEEDS in the environment say
/// otherwise.
inline Seeds seeds_from(std::uint64_t first, std::uint64_t count) {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  first = number("KVSYNCFS_SIM_SEED", first);
  return {first, first + number("KVSYNCFS_SIM_SEEDS", count)};
}

/// What is part of the suite at its full size: a tenth of it where the environment asks for a short
/// run (KVSYNCFS_SIM_SHORT), as the slow builds do.
inline std::uint64_t share_of(std::uint64_t count) {
  return std::getenv("KVSYNCFS_SIM_SHORT") != nullptr ? (count + 9) / 10 : count;
}

}  // namespace kvsyncfs
