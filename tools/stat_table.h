// What kvsyncfs-stat prints, as text or JSON. Pure. Thread: values.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "tools/stat_model.h"
#include "tools/stat_options.h"
#include "tools/stat_rates.h"

namespace kvsyncfs {

/// One answer, and the one before it if there was one.
struct Report {
  const StatDocument* before = nullptr;
  const StatDocument& now;
  const StatOptions& options;
};

/// Over --window if it is given, else over the interval, else over kWindowMaxNs.
std::optional<HitRate> recent_hit_rate(const Report& report);
/// False if a threshold was given and the recent hit rate is known and below it.
bool is_threshold_met(const Report& report);

std::string to_table(const Report& report);
/// The daemon's document with what follows from it ("hit_rate", "write_amplification"), or only the
/// parts that the options ask for. One line.
std::string to_json(const Report& report);

/// "98.21 % over the last 5 min 0 s", "no reads yet".
std::string describe(const std::optional<HitRate>& rate);

}  // namespace kvsyncfs
