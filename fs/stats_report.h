// What a daemon tells about itself, as values and as the JSON document of kvsyncfs-stat(8).
// Pure. Thread: values.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "fs/op_metrics.h"

namespace kvsyncfs {

inline constexpr std::uint64_t kNoDevice = ~std::uint64_t{0};

struct StatsIdentity {
  std::string store, mountpoint;           ///< no mount point: a node that only holds data
  std::uint64_t device = kNoDevice;        ///< st_dev of the mount
  std::string store_uuid = {};             ///< OpenStore::uuid()
  std::vector<std::string> degraded = {};  ///< what does not work as well as it may, one line each
};

/// One kind of operation since the start.
struct OpSummary {
  std::string_view name;
  std::uint64_t count = 0, errors = 0;
  std::uint64_t p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
};

/// Pages read up to a moment; with two of them there is a hit rate.
struct PageReads {
  std::uint64_t uptime_ns = 0, hits = 0, misses = 0;
};

struct StatsReport {
  StatsIdentity identity;
  std::string uuid, label;
  bool is_clustered = false;
  std::int64_t pid = 0;
  std::uint64_t uptime_ns = 0;
  std::vector<OpSummary> operations;
  EngineCounters engine;
  std::optional<SpaceInfo> space;  ///< missing: the engine could not tell
  std::deque<PageReads> history;   ///< oldest first
};

/// The operations that were called at least once, in the order of OpKind.
std::vector<OpSummary> summarize(const OpMetrics& metrics);

/// Whether the counter of the engine with this name in the document may also fall.
bool is_gauge(std::string_view engine_counter);

/// One line of JSON. Bytes that are not UTF-8 become U+FFFD.
std::string to_json(const StatsReport& report);

}  // namespace kvsyncfs
