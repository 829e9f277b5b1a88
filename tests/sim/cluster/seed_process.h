// One seed, one process: so a run begins with nothing that earlier ones left, an assert or a hang
// in it is the failure of its seed, and threads that it leaves go with it. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kvsyncfs {

struct SeedRun {
  std::string problem;  ///< empty: none
  std::string notes;    ///< what it counted, for who asks; a run's own words
};

/// Calls `run` in a process of its own, which has to come to an end within `seconds`.
SeedRun run_in_process(const std::function<SeedRun()>& run, unsigned seconds);

/// KVSYNCFS_SIM_TELL is set: who looks for a fault is told more, on standard output.
bool tells_more();

/// From within `run`: ends the process at once with this problem.
[[noreturn]] void end_process(const std::string& problem);

}  // namespace kvsyncfs
