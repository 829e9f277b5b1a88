// kvsyncfs: the daemon. Takes the store's lock, opens the engine, mounts (or not, as a node that
// only holds data), serves, closes.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>

#include "engine/env/real.h"
#include "engine/open_store.h"
#include "engine/workers.h"
#include "fs/daemonize.h"
#include "fs/metrics_server.h"
#include "fs/mount_check.h"
#include "fs/moved_entries.h"
#include "fs/options.h"
#include "fs/process_setup.h"
#include "fs/session.h"
#include "fs/stats_server.h"
#include "fs/stop_signals.h"
#include "fs/store_wait.h"
#include "fs/watchdog.h"

namespace kvsyncfs {
namespace {

std::uint64_t memory_of_machine() {
  struct sysinfo info {};
  ::sysinfo(&info);
  return info.totalram * static_cast<std::uint64_t>(info.mem_unit);
}

std::uint64_t default_cache_size() {
  return std::min<std::uint64_t>(memory_of_machine() / 8, std::uint64_t{4} << 30);
}

void start_log(const MountOptions& options) {
  auto logger = options.foreground
                    ? spdlog::stderr_color_mt("kvsyncfs")
                    : spdlog::syslog_logger_mt("kvsyncfs", "kvsyncfs", 0, LOG_DAEMON);
  logger->set_level(options.debug ? spdlog::level::debug
                                  : spdlog::level::from_str(options.log_level));
  spdlog::set_default_logger(std::move(logger));
}

EngineOptions engine_options(const MountOptions& options) {
  EngineOptions engine;
  engine.store = options.store;
  engine.cache_size_bytes =
      options.cache_size_bytes != 0 ? options.cache_size_bytes : default_cache_size();
  engine.write_buffer_bytes = options.write_buffer_bytes;
  engine.timeout_ns = options.timeout_s * 1'000'000'000;
  engine.heal_delay_ns = options.heal_delay_s * 1'000'000'000;
  engine.scrub_period_ns = options.scrub_period_s * 1'000'000'000;
  engine.read_only = options.read_only;
  engine.warn = [](std::string_view line) { spdlog::warn("{}", line); };
  return engine;
}

/// What serves beside the session, in the order of its making.
struct Attendants {
  Watchdog& watchdog;
  StopSignals& signals;
  MetricsServer* metrics;  ///< null: nobody asked for one
  std::vector<std::string> degraded;
};

/// What Prometheus is told, for the length of a scope.
class Scrapes {
 public:
  Scrapes(MetricsServer* server, const StatsServer& stats) : server_(server) {
    if (server_) server_->serve([&stats] { return stats.document(); });
  }
  ~Scrapes() {
    if (server_) server_->serve({});
  }
  Scrapes(const Scrapes&) = delete;
  Scrapes& operator=(const Scrapes&) = delete;

 private:
  MetricsServer* server_;
};

/// In a cluster: names of directories that other nodes moved leave the kernel, for the length of a
/// scope.
class MovedAway {
 public:
  MovedAway(Engine& engine, Session& session)
      : engine_(engine), entries_([&session](InodeId parent, const std::string& name) {
          session.forget_entry(parent, name);
        }) {}
  ~MovedAway() { engine_.set_on_moved({}); }
  MovedAway(const MovedAway&) = delete;
  MovedAway& operator=(const MovedAway&) = delete;

  /// Errors: kNoMemory.
  Status start() {
    KVSYNCFS_TRY(entries_.start());
    engine_.set_on_moved(
        [this](InodeId parent, std::string_view name) { entries_.add(parent, name); });
    return {};
  }
  void stop() { entries_.stop(); }

 private:
  Engine& engine_;
  MovedEntries entries_;
};

/// From the mount to its end. The session unmounts as the last, so that the
/// watchdog never sees a mount that nobody serves.
Status serve_mount(OpenStore& store, Clock& clock, const MountOptions& options, Verdict& verdict,
                   Attendants& attendants) {
  Engine& engine = store.engine();
  OpMetrics metrics;
  Face face{engine, metrics, options.atime, store.is_clustered()};
  const std::string warning = mountpoint_warning(options.mountpoint);
  KVSYNCFS_ASSIGN(const auto session, Session::mount(face, options));
  engine.set_forget_attributes(
      [&session](InodeId inode) { return session->forget_attributes(inode); });
  Workers workers(engine, clock);
  for (const std::string& line : attendants.degraded) spdlog::warn("{}", line);
  StatsServer stats(
      engine, metrics,
      {options.store, options.mountpoint, session->device(), store.uuid(), attendants.degraded},
      attendants.watchdog.heartbeat());
  if (const Status started = stats.start(); started)
    attendants.watchdog.watch(session->device());
  else
    spdlog::warn("no counters, barriers and watchdog: {}", describe(started.error()));
  const Scrapes scrapes(attendants.metrics, stats);
  MovedAway moved(engine, *session);
  if (face.clustered) KVSYNCFS_TRY(moved.start());
  attendants.signals.set_action([&] {
    moved.stop();
    session->stop();
  });
  spdlog::info("mounted {} at {}", options.store, options.mountpoint);
  verdict.ready(warning);
  Status served = session->serve();
  engine.set_forget_attributes({});
  attendants.signals.set_action({});
  attendants.watchdog.stop();
  return served;
}

/// Of a node that only holds data: the other nodes are served until a signal comes, or until the
/// node can serve no more, which is an error.
Status serve_peers(OpenStore& store, Clock& clock, const MountOptions& options, Verdict& verdict,
                   Attendants& attendants) {
  const OpMetrics metrics;  // nobody calls
  Workers workers(store.engine(), clock);
  for (const std::string& line : attendants.degraded) spdlog::warn("{}", line);
  StatsServer stats(store.engine(), metrics,
                    {options.store, "", kNoDevice, store.uuid(), attendants.degraded});
  if (const Status started = stats.start(); !started)
    spdlog::warn("no counters and barriers: {}", describe(started.error()));
  const Scrapes scrapes(attendants.metrics, stats);
  std::promise<void> stop;
  auto stopped = stop.get_future();
  attendants.signals.set_action([&stop] { stop.set_value(); });
  spdlog::info("serves {} without a mount", options.store);
  verdict.ready("");
  Status failure;
  while (failure && stopped.wait_for(std::chrono::seconds(1)) != std::future_status::ready)
    failure = store.engine().failure();
  attendants.signals.set_action({});  // it may still be at its end
  return failure;
}

Status serve(const MountOptions& options, Verdict& verdict, Attendants& attendants) {
  std::unique_ptr<MetricsServer> metrics;  // before a node joins others, which would miss it
  if (!options.metrics.empty()) {
    KVSYNCFS_ASSIGN(metrics, MetricsServer::listen(options.metrics));
    attendants.metrics = metrics.get();
  }
  KVSYNCFS_ASSIGN(const StoreLock lock,
                  take_store(options.store, std::chrono::seconds(options.timeout_s)));
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  const auto random = make_real_random();
  KVSYNCFS_ASSIGN(const auto store,
                  open_store(*disk, *clock, *random, engine_options(options),
                             {options.listen, KVSYNCFS_VERSION, options.log_size_bytes,
                              options.tls_certificate, options.tls_key, options.tls_authority}));
  const Status served = options.no_mount
                            ? serve_peers(*store, *clock, options, verdict, attendants)
                            : serve_mount(*store, *clock, options, verdict, attendants);
  const Status closed = store->engine().close();
  return closed ? served : closed;
}

/// What the C++ library throws where it gets no memory or no thread ends the daemon in order.
Status serve_or_tell(const MountOptions& options, Verdict& verdict, Attendants& attendants) {
  try {
    return serve(options, verdict, attendants);
  } catch (const std::exception& error) {
    return Error(Code::kNoMemory, options.store + ": " + error.what());
  }
}

int run(const MountOptions& options, Verdict& verdict) {
  std::vector<std::string> degraded;
  Watchdog watchdog;  // forks: before threads, the log and the lock
  // Under a debugger the daemon may stand still; without a mount nobody hangs on one.
  if (!options.debug && !options.no_mount)
    if (const Status started = watchdog.start(options.timeout_s, options.mountpoint); !started)
      degraded.push_back(describe(started.error()));
  for (std::string& line : harden_process()) degraded.push_back(std::move(line));
  StopSignals signals;
  start_log(options);
  Attendants attendants{watchdog, signals, nullptr, std::move(degraded)};
  const Status served = serve_or_tell(options, verdict, attendants);
  if (served) {
    spdlog::info("{} {}", options.no_mount ? "left" : "unmounted",
                 options.no_mount ? options.store : options.mountpoint);
    return 0;
  }
  const std::string line = describe(served.error());
  if (!options.foreground) spdlog::error("{}", line);
  verdict.failed(line);
  return 1;
}

int fail(const Error& error, int status) {
  std::fprintf(stderr, "kvsyncfs: %s\n", describe(error).c_str());
  return status;
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) try {
  using namespace kvsyncfs;
  auto options = parse_mount_options({argv + 1, argv + argc});
  if (!options) return fail(options.error(), 2);
  if (options->help) return std::fputs(mount_help().c_str(), stdout) < 0;
  if (options->version) return std::puts("kvsyncfs " KVSYNCFS_VERSION) < 0;
  if (const Status fit = check_sizes(*options, memory_of_machine()); !fit)
    return fail(fit.error(), 1);
  if (const Status ready = prepare_mount(*options); !ready) return fail(ready.error(), 1);
  return run_daemon(options->foreground, [&](Verdict& verdict) { return run(*options, verdict); });
} catch (const std::exception& error) {
  return kvsyncfs::fail({kvsyncfs::Code::kNoMemory, error.what()}, 1);
}
