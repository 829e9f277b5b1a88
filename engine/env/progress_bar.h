// One line on a terminal that tells how far long work is and when it will end. Thread: one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "engine/env/clock.h"

namespace kvsyncfs {

/// "check segments [#####     ]  50 %, 12 s left"; `columns` is the width of the bar. Pure.
std::string progress_line(std::string_view phase, std::uint64_t done, std::uint64_t total,
                          std::uint64_t elapsed_ns, std::size_t columns);

class ProgressBar {
 public:
  /// Draws nothing unless `out` is a terminal and not `quiet`.
  ProgressBar(Clock& clock, std::FILE* out, bool quiet);
  ~ProgressBar();  ///< leaves no trace of the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// At most ten times a second something is drawn. A new phase starts a new estimate.
  void show(std::string_view phase, std::uint64_t done, std::uint64_t total);
  /// Takes the line away, so that something else can be printed.
  void clear();

 private:
  Clock& clock_;
  std::FILE* const out_;
  const bool active_;
  std::string phase_;
  std::uint64_t phase_start_ns_ = 0, drawn_ns_ = 0;
  bool visible_ = false;
};

}  // namespace kvsyncfs
