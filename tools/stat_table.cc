#include "tools/stat_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/stat_units.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kNoModel =
    "not active: no model is loaded, every policy runs its heuristic";

std::string no_queue_pairs(const StatDocument& now) {
  return fmt::format("not active: no RDMA transport (transport {})", now.text("transport"));
}

void add_line(std::string& out, std::string_view title, std::string_view text) {
  out += fmt::format("{:<13} {}\n", title, text);
}

std::string grown_bytes(const Interval& interval, std::string_view name) {
  const Count growth = interval.growth("engine", name);
  const auto rate = interval.rate(growth);
  std::string text = human_bytes(growth);
  if (rate) text += fmt::format(" ({}/s)", human_bytes(static_cast<std::uint64_t>(*rate)));
  return text;
}

/// "12 MiB of 64 MiB"
std::string part_of(Count part, Count whole) {
  return fmt::format("{} of {}", human_bytes(part), human_bytes(whole));
}

void add_head(std::string& out, const StatDocument& now) {
  const std::string label = now.text("label");
  add_line(out, "volume", label.empty() ? now.text("uuid") : label + " " + now.text("uuid"));
  add_line(out, "store", now.text("store"));
  const std::string mountpoint = now.text("mountpoint");
  add_line(out, "mounted on", mountpoint.empty() ? "nothing, it only holds data" : mountpoint);
  add_line(out, "daemon",
           fmt::format("version {}, process {}, up {}", now.text("version"), now.pid(),
                       human_duration(now.uptime_ns())));
  for (const std::string& reason : now.words("degraded")) add_line(out, "DEGRADED", reason);
}

void add_operations(std::string& out, const Interval& interval, const StatDocument& now) {
  auto operations = now.operations();
  std::erase_if(operations, [](const auto& stats) { return stats.count.value_or(0) == 0; });
  std::stable_sort(operations.begin(), operations.end(),
                   [](const auto& a, const auto& b) { return *a.count > *b.count; });
  const std::string over = interval.is_since_start()
                               ? "since the start"
                               : "over the last " + human_duration(interval.length_ns());
  out += fmt::format("\noperations per second {}; the other columns since the start\n", over);
  constexpr std::string_view kRow = "  {:<16} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}\n";
  out += fmt::format(kRow, "", "per second", "count", "errors", "p50", "p99", "p99.9", "max");
  std::uint64_t all = 0, all_grown = 0, all_errors = 0;
  for (const OperationStats& stats : operations) {
    const Count grown = interval.operation_growth(stats.name);
    out +=
        fmt::format(kRow, stats.name, human_rate(interval.rate(grown)), human_count(stats.count),
                    human_count(stats.errors), human_time(stats.p50_ns), human_time(stats.p99_ns),
                    human_time(stats.p999_ns), human_time(stats.max_ns));
    all += *stats.count;
    all_grown += grown.value_or(0);
    all_errors += stats.errors.value_or(0);
  }
  out += fmt::format(kRow, "all", human_rate(interval.rate(all_grown)), human_count(all),
                     human_count(all_errors), "", "", "", "");
  out.erase(out.find_last_not_of(" \n") + 1);
  out += "\n\n";
}

void add_data(std::string& out, const Report& report, const Interval& interval) {
  const auto get = [&](std::string_view name) { return report.now.number("engine", name); };
  const auto total = hit_rate_in_total(report.now);
  add_line(out, "bytes",
           fmt::format("read {}, written {}", grown_bytes(interval, "read_bytes"),
                       grown_bytes(interval, "written_bytes")));
  add_line(out, "hot tier", "hit rate " + describe(recent_hit_rate(report)));
  add_line(out, "",
           fmt::format("in total {}; {} hits ({} in the write buffer), {} misses",
                       total && total->share() ? human_percent(*total->share()) : "n/a",
                       human_count(get("page_hits")), human_count(get("buffer_hit_pages")),
                       human_count(get("page_misses"))));
  add_line(out, "", "cache " + part_of(get("cache_bytes"), get("cache_bytes_max")));
  add_line(out, "write buffer",
           fmt::format("{} dirty, the oldest for {}; {} flushes, {} syncs",
                       part_of(get("dirty_bytes"), get("dirty_bytes_max")),
                       human_time(get("dirty_age_ns")), human_count(get("flushes")),
                       human_count(get("syncs"))));
  add_line(out, "log",
           fmt::format("{} held, {} of file bytes went through it; {} checkpoints",
                       part_of(get("log_held_bytes"), get("log_capacity_bytes")),
                       human_bytes(get("inline_bytes")), human_count(get("checkpoints"))));
  add_line(out, "",
           fmt::format("position {}, durable {}", human_count(get("log_position")),
                       human_count(get("log_durable"))));
}

void add_cluster(std::string& out, const StatDocument& now) {
  const auto get = [&](std::string_view name) { return now.number("engine", name); };
  if (get("members_up").value_or(0) == 0) return;
  add_line(out, "cluster",
           fmt::format("{} nodes up; {} changes wait for others, {} segments lack a holder",
                       human_count(get("members_up")), human_count(get("unacknowledged")),
                       human_count(get("at_risk_segments"))));
  add_line(out, "",
           fmt::format("{} bytes copied for others, {} to new holders; {} pages pulled",
                       human_bytes(get("copied_bytes")), human_bytes(get("healed_bytes")),
                       human_count(get("pulled_pages"))));
  add_line(out, "",
           fmt::format("{} leases lost, {} connections refused", human_count(get("leases_lost")),
                       human_count(get("refused_connections"))));
}

void add_storage(std::string& out, const Report& report, const Interval& interval) {
  const auto get = [&](std::string_view name) { return report.now.number("engine", name); };
  const auto space = [&](std::string_view name) { return report.now.number("space", name); };
  const auto amplification = write_amplification(interval);
  add_line(out, "cleaner",
           fmt::format("{} segments cleaned, {} moved; write amplification {}",
                       human_count(get("cleaned_segments")), human_bytes(get("moved_bytes")),
                       amplification ? fmt::format("{:.2f}", *amplification) : "n/a"));
  add_line(out, "segments",
           fmt::format("{}, {} on disk, {} of them live", human_count(get("segment_count")),
                       human_bytes(get("segment_bytes")), human_bytes(get("live_bytes"))));
  add_line(out, "space", part_of(space("free_bytes"), space("total_bytes")) + " free");
  add_line(out, "inodes",
           fmt::format("{} used, {} free; {} held by the kernel, {} without a name",
                       human_count(get("inodes")), human_count(space("free_inodes")),
                       human_count(get("held_inodes")), human_count(get("orphans"))));
  if (get("scrub_total_bytes").value_or(0) > 0)
    add_line(
        out, "scrub",
        fmt::format("{} of the pass; {} pages mended, {} damaged for good",
                    part_of(get("scrub_done_bytes"), get("scrub_total_bytes")),
                    human_count(get("scrub_mended_pages")), human_count(get("scrub_bad_pages"))));
  add_line(out, "errors",
           fmt::format("{} of the engine, {} corrupt pages", human_count(get("errors")),
                       human_count(get("corrupt_pages"))));
}

std::string hit_rate_line(const Report& report) {
  std::string text = describe(recent_hit_rate(report));
  const auto total = hit_rate_in_total(report.now);
  if (total && total->share()) text += fmt::format(", {} in total", human_percent(*total->share()));
  if (report.options.threshold) {
    text += fmt::format("; threshold {} {}", human_percent(*report.options.threshold),
                        is_threshold_met(report) ? "met" : "MISSED");
  }
  return text;
}

bool asks_for_parts(const StatOptions& options) {
  return options.hit_rate || options.qp || options.model;
}

boost::json::value share_json(const std::optional<HitRate>& rate) {
  const auto share = rate ? rate->share() : std::nullopt;
  return share ? boost::json::value(*share) : boost::json::value(nullptr);
}

void add_hit_rate(boost::json::object& out, const Report& report) {
  const auto recent = recent_hit_rate(report);
  out["hit_rate"] = share_json(recent);
  out["hit_rate_total"] = share_json(hit_rate_in_total(report.now));
  if (recent) {
    const double seconds = static_cast<double>(recent->length_ns) / static_cast<double>(kSecondNs);
    out["hit_rate_window"] = {
        {"seconds", seconds}, {"hits", recent->hits}, {"misses", recent->misses}};
  }
  if (report.options.threshold) {
    out["threshold"] = *report.options.threshold;
    out["threshold_met"] = is_threshold_met(report);
  }
}

boost::json::object not_active(std::string_view reason) {
  return {{"active", false}, {"reason", reason}};
}

}  // namespace

std::optional<HitRate> recent_hit_rate(const Report& report) {
  const auto now = report.now.hits();
  const bool has_before = report.before != nullptr && is_same_life(*report.before, report.now);
  if (has_before && now && !report.options.window_ns) {
    if (const auto before = report.before->hits()) return hit_rate_between(*before, *now);
  }
  return hit_rate_over(report.now, report.options.window_ns.value_or(kWindowMaxNs));
}

bool is_threshold_met(const Report& report) {
  const auto rate = recent_hit_rate(report);
  const auto share = rate ? rate->share() : std::nullopt;
  return !report.options.threshold || !share || *share >= *report.options.threshold;
}

std::string describe(const std::optional<HitRate>& rate) {
  if (!rate) return "n/a";
  const std::string length = human_duration(rate->length_ns);
  const auto share = rate->share();
  if (!share) return fmt::format("no reads yet in the last {}", length);
  return fmt::format("{} over the last {}", human_percent(*share), length);
}

std::string to_table(const Report& report) {
  std::string out;
  if (asks_for_parts(report.options)) {
    if (report.options.hit_rate) add_line(out, "hit rate", hit_rate_line(report));
    if (report.options.qp) add_line(out, "queue pairs", no_queue_pairs(report.now));
    if (report.options.model) add_line(out, "model", kNoModel);
    return out;
  }
  const Interval interval(report.before, report.now);
  add_head(out, report.now);
  add_operations(out, interval, report.now);
  add_data(out, report, interval);
  add_cluster(out, report.now);
  add_storage(out, report, interval);
  return out;
}

std::string to_json(const Report& report) {
  boost::json::object out;
  const StatOptions& options = report.options;
  if (!asks_for_parts(options)) {
    out = report.now.json();
    const auto amplification = write_amplification(Interval(report.before, report.now));
    out["write_amplification"] =
        amplification ? boost::json::value(*amplification) : boost::json::value(nullptr);
  }
  if (options.hit_rate || !asks_for_parts(options)) add_hit_rate(out, report);
  if (options.qp) out["qp"] = not_active(no_queue_pairs(report.now));
  if (options.model) out["model"] = not_active(kNoModel);
  return boost::json::serialize(out) + "\n";
}

}  // namespace kvsyncfs
