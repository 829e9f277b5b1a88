#include "fs/stats_server.h"

#include <unistd.h>

#include <utility>

#include "fs/admin_requests.h"

namespace kvsyncfs {
namespace {

// Looks back a little more than the 300 s that kvsyncfs-stat offers.
constexpr std::size_t kHistoryMax = 62;
static_assert((kHistoryMax - 2) * kTickMs >= 300'000);

}  // namespace

StatsServer::StatsServer(Engine& engine, const OpMetrics& metrics, StatsIdentity identity,
                         int heartbeat, std::string folder)
    : engine_(engine),
      metrics_(metrics),
      identity_(std::move(identity)),
      heartbeat_(heartbeat),
      folder_(std::move(folder)) {}

StatsServer::~StatsServer() { stop(); }

Status StatsServer::start() {
  files_ = std::make_unique<RunFiles>();
  const std::string alias = identity_.store_uuid + ".sock";
  const bool has_mount = identity_.device != kNoDevice;
  KVSYNCFS_TRY(files_->make(folder_, has_mount ? socket_name(identity_.device) : alias,
                            has_mount ? alias : ""));
  RequestHandlers handlers;
  handlers.stats = [this] {
    StatsReport now = report();
    now.history = history_;
    return to_json(now);
  };
  handlers.barrier = [this] { return engine_.sync_all(); };
  handlers.admin = [this](std::string_view request) {
    return answer_admin(engine_.admin(), request);
  };
  handlers.tick = [this] { remember(); };
  server_ = std::make_unique<RequestServer>(files_->fd(), heartbeat_, std::move(handlers));
  return server_->start();
}

void StatsServer::stop() {
  server_.reset();
  files_.reset();
}

std::uint64_t StatsServer::uptime_ns() const {
  const auto up = std::chrono::steady_clock::now() - begin_;
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(up).count());
}

void StatsServer::remember() {
  const EngineCounters counters = engine_.counters();
  history_.push_back({uptime_ns(), counters.page_hits, counters.page_misses});
  if (history_.size() > kHistoryMax) history_.pop_front();
}

std::string StatsServer::document() const { return to_json(report()); }

StatsReport StatsServer::report() const {
  StatsReport report;
  report.identity = identity_;
  for (std::string& line : engine_.degraded()) report.identity.degraded.push_back(std::move(line));
  report.uuid = engine_.superblock().uuid_text();
  report.label = engine_.superblock().label;
  report.is_clustered = (engine_.superblock().incompatible & kIncompatibleCluster) != 0;
  report.pid = ::getpid();
  report.uptime_ns = uptime_ns();
  report.operations = summarize(metrics_);
  report.engine = engine_.counters();
  if (const auto space = engine_.space()) report.space = *space;
  return report;
}

}  // namespace kvsyncfs
