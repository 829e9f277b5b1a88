#include "fs/stats_report.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <utility>

namespace kvsyncfs {
namespace {

namespace json = boost::json;

struct Counter {
  std::string_view name;
  std::uint64_t EngineCounters::*member;
  bool is_gauge = false;
};
constexpr bool kGauge = true;
constexpr std::array kCounters = {
    Counter{"read_bytes", &EngineCounters::read_bytes},
    Counter{"written_bytes", &EngineCounters::written_bytes},
    Counter{"page_hits", &EngineCounters::page_hits},
    Counter{"page_misses", &EngineCounters::page_misses},
    Counter{"buffer_hit_pages", &EngineCounters::buffer_hit_pages},
    Counter{"dirty_bytes", &EngineCounters::dirty_bytes, kGauge},
    Counter{"dirty_bytes_max", &EngineCounters::dirty_bytes_max, kGauge},
    Counter{"cache_bytes", &EngineCounters::cache_bytes, kGauge},
    Counter{"cache_bytes_max", &EngineCounters::cache_bytes_max, kGauge},
    Counter{"log_position", &EngineCounters::log_position, kGauge},
    Counter{"log_durable", &EngineCounters::log_durable, kGauge},
    Counter{"log_held_bytes", &EngineCounters::log_held_bytes, kGauge},
    Counter{"log_capacity_bytes", &EngineCounters::log_capacity_bytes, kGauge},
    Counter{"syncs", &EngineCounters::syncs},
    Counter{"flushes", &EngineCounters::flushes},
    Counter{"checkpoints", &EngineCounters::checkpoints},
    Counter{"inline_bytes", &EngineCounters::inline_bytes},
    Counter{"segment_count", &EngineCounters::segment_count, kGauge},
    Counter{"segment_bytes", &EngineCounters::segment_bytes, kGauge},
    Counter{"segment_written_bytes", &EngineCounters::segment_written_bytes},
    Counter{"appended_bytes", &EngineCounters::appended_bytes},
    Counter{"cleaned_segments", &EngineCounters::cleaned_segments},
    Counter{"moved_bytes", &EngineCounters::moved_bytes},
    Counter{"live_bytes", &EngineCounters::live_bytes, kGauge},
    Counter{"inodes", &EngineCounters::inodes, kGauge},
    Counter{"held_inodes", &EngineCounters::held_inodes, kGauge},
    Counter{"orphans", &EngineCounters::orphans, kGauge},
    Counter{"ballast_bytes", &EngineCounters::ballast_bytes, kGauge},
    Counter{"corrupt_pages", &EngineCounters::corrupt_pages},
    Counter{"errors", &EngineCounters::errors},
    Counter{"copied_bytes", &EngineCounters::copied_bytes},
    Counter{"pulled_pages", &EngineCounters::pulled_pages},
    Counter{"healed_bytes", &EngineCounters::healed_bytes},
    Counter{"at_risk_segments", &EngineCounters::at_risk_segments, kGauge},
    Counter{"dirty_age_ns", &EngineCounters::dirty_age_ns, kGauge},
    Counter{"members_up", &EngineCounters::members_up, kGauge},
    Counter{"unacknowledged", &EngineCounters::unacknowledged, kGauge},
    Counter{"leases_lost", &EngineCounters::leases_lost},
    Counter{"refused_connections", &EngineCounters::refused_connections},
    Counter{"scrubbed_bytes", &EngineCounters::scrubbed_bytes},
    Counter{"scrub_done_bytes", &EngineCounters::scrub_done_bytes, kGauge},
    Counter{"scrub_total_bytes", &EngineCounters::scrub_total_bytes, kGauge},
    Counter{"scrub_mended_pages", &EngineCounters::scrub_mended_pages},
    Counter{"scrub_bad_pages", &EngineCounters::scrub_bad_pages},
};
static_assert(sizeof(EngineCounters) == kCounters.size() * sizeof(std::uint64_t),
              "a counter is missing above");

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of the UTF-8 sequence at the begin of `text`; 0 if there is none.
std::size_t sequence_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead < 0xC2   ? 0
                           : lead < 0xE0 ? 2
                           : lead < 0xF0 ? 3
                           : lead < 0xF5 ? 4
                                         : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  const bool is_low = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool is_high = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
  return is_low || is_high ? 0 : size;
}

/// Paths and labels are bytes; JSON is UTF-8.
std::string to_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t size = sequence_size(bytes);
    text += size == 0 ? kReplacement : bytes.substr(0, size);
    bytes.remove_prefix(size == 0 ? 1 : size);
  }
  return text;
}

json::object operations_json(const std::vector<OpSummary>& operations) {
  json::object result;
  for (const OpSummary& op : operations) {
    result[op.name] = {
        {"count", op.count},
        {"errors", op.errors},
        {"latency_ns",
         {{"p50", op.p50_ns}, {"p99", op.p99_ns}, {"p999", op.p999_ns}, {"max", op.max_ns}}}};
  }
  return result;
}

json::object engine_json(const EngineCounters& counters) {
  json::object result;
  for (const Counter& counter : kCounters) result[counter.name] = counters.*counter.member;
  return result;
}

json::value space_json(const std::optional<SpaceInfo>& space) {
  if (!space) return nullptr;
  return {{"total_bytes", space->total_bytes},
          {"free_bytes", space->free_bytes},
          {"available_bytes", space->available_bytes},
          {"total_inodes", space->total_inodes},
          {"free_inodes", space->free_inodes}};
}

}  // namespace

bool is_gauge(std::string_view engine_counter) {
  return std::any_of(kCounters.begin(), kCounters.end(), [&](const Counter& counter) {
    return counter.name == engine_counter && counter.is_gauge;
  });
}

std::vector<OpSummary> summarize(const OpMetrics& metrics) {
  std::vector<OpSummary> result;
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const OpMetrics::Op& op = metrics.op(kind);
    // Errors first: an operation that is recorded meanwhile is in the count, if it is in the
    // errors.
    const std::uint64_t errors = op.errors.load(std::memory_order_relaxed);
    const HistogramSnapshot latency = op.latency_ns.snapshot();
    if (latency.count() == 0) continue;
    result.push_back({to_string(kind), latency.count(), errors, latency.percentile(50),
                      latency.percentile(99), latency.percentile(99.9), latency.max()});
  }
  return result;
}

std::string to_json(const StatsReport& report) {
  json::object result = {{"version", KVSYNCFS_VERSION},
                         {"pid", report.pid},
                         {"store", to_utf8(report.identity.store)},
                         {"mountpoint", to_utf8(report.identity.mountpoint)},
                         {"uuid", report.uuid},
                         {"label", to_utf8(report.label)},
                         {"uptime_ns", report.uptime_ns},
                         {"transport", report.is_clustered ? "tcp" : "none: one node"},
                         {"model", "none: heuristics only"}};
  json::array degraded;
  for (const std::string& line : report.identity.degraded) degraded.emplace_back(to_utf8(line));
  result["degraded"] = std::move(degraded);
  result["operations"] = operations_json(report.operations);
  result["engine"] = engine_json(report.engine);
  result["space"] = space_json(report.space);
  json::array history;
  for (const PageReads& reads : report.history) {
    history.push_back(
        {{"uptime_ns", reads.uptime_ns}, {"page_hits", reads.hits}, {"page_misses", reads.misses}});
  }
  result["history"] = std::move(history);
  return json::serialize(result);
}

}  // namespace kvsyncfs
