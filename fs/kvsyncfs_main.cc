// kvsyncfs: the daemon. Takes the store's lock, opens the engine, mounts, serves, closes.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/engine.h"
#include "engine/env/real.h"
#include "engine/env/store_lock.h"
#include "engine/workers.h"
#include "fs/daemonize.h"
#include "fs/options.h"
#include "fs/session.h"
#include "fs/stats_server.h"
#include "fs/watchdog.h"

namespace kvsyncfs {
namespace {

Error system_error(int error, const std::string& what) {
  return Error(from_errno(error), what + ": " + std::strerror(error));
}

/// Absolute, without links: the daemon changes its folder, and /proc/self/mountinfo shows such
/// paths.
Result<std::string> resolve(const std::string& path) {
  char resolved[PATH_MAX];
  if (!::realpath(path.c_str(), resolved)) return system_error(errno, path);
  return std::string(resolved);
}

/// A mount point whose daemon died answers ENOTCONN: take it away, so that the next mount works.
Status prepare_mountpoint(MountOptions& options) {
  struct stat st {};
  if (::stat(options.mountpoint.c_str(), &st) != 0) {
    if (errno != ENOTCONN) return system_error(errno, options.mountpoint);
    if (::umount2(options.mountpoint.c_str(), MNT_DETACH) != 0)
      return system_error(
          errno, options.mountpoint + ": a dead mount is in the way and cannot be detached");
  }
  KVSYNCFS_ASSIGN(options.mountpoint, resolve(options.mountpoint));
  if (::stat(options.mountpoint.c_str(), &st) != 0) return system_error(errno, options.mountpoint);
  if (!S_ISDIR(st.st_mode)) return system_error(ENOTDIR, options.mountpoint);
  std::error_code ignored;
  if (!std::filesystem::is_empty(options.mountpoint, ignored) && !ignored)
    std::fprintf(stderr, "kvsyncfs: warning: %s is not empty, the mount hides its files\n",
                 options.mountpoint.c_str());
  return {};
}

Status prepare(MountOptions& options) {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return system_error(errno, "/dev/fuse");
  if (::geteuid() != 0) return system_error(EPERM, options.mountpoint + ": only root can mount");
  KVSYNCFS_ASSIGN(options.store, resolve(options.store));
  KVSYNCFS_TRY(prepare_mountpoint(options));
  if (options.store == options.mountpoint || options.store.starts_with(options.mountpoint + "/"))
    return Error(Code::kInvalid,
                 options.store + ": lies below the mount point " + options.mountpoint);
  return {};
}

std::uint64_t default_cache_size() {
  struct sysinfo info {};
  ::sysinfo(&info);
  const std::uint64_t memory = info.totalram * static_cast<std::uint64_t>(info.mem_unit);
  return std::min<std::uint64_t>(memory / 8, std::uint64_t{4} << 30);
}

/// The kernel writes dirty pages of this mount through this process when memory is short: it must
/// not be the first to go, nor wait for its own mount.
void harden_process() {
  if (std::ofstream score("/proc/self/oom_score_adj"); score) score << -900;
  ::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max = std::max<rlim_t>(files.rlim_max, 65536);
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  const rlimit no_core{0, 0};  // a dump could go to this mount
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::umask(0);
  [[maybe_unused]] const int changed = ::chdir("/");
}

void start_log(const MountOptions& options) {
  auto logger = options.foreground
                    ? spdlog::stderr_color_mt("kvsyncfs")
                    : spdlog::syslog_logger_mt("kvsyncfs", "kvsyncfs", 0, LOG_DAEMON);
  logger->set_level(spdlog::level::from_str(options.log_level));
  spdlog::set_default_logger(std::move(logger));
}

Result<std::unique_ptr<Engine>> open_engine(Disk& disk, Clock& clock, Random& random,
                                            const MountOptions& options) {
  EngineOptions engine;
  engine.store = options.store;
  engine.cache_size_bytes =
      options.cache_size_bytes ? options.cache_size_bytes : default_cache_size();
  engine.write_buffer_bytes = options.write_buffer_bytes;
  engine.read_only = options.read_only;
  engine.warn = [](std::string_view line) { spdlog::warn("{}", line); };
  return Engine::open(disk, clock, random, std::move(engine));
}

Status serve(const MountOptions& options, Verdict& verdict) {
  KVSYNCFS_ASSIGN(const StoreLock lock, StoreLock::take(options.store));
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  const auto random = make_real_random();
  KVSYNCFS_ASSIGN(const auto engine, open_engine(*disk, *clock, *random, options));
  OpMetrics metrics;
  Face face{*engine, metrics, options.atime};
  Status served{};
  {
    KVSYNCFS_ASSIGN(const auto session, Session::mount(face, options));
    Workers workers(*engine, *clock);
    StatsServer stats(*engine, metrics, {options.store, options.mountpoint, session->device()});
    KVSYNCFS_TRY(stats.start());
    verdict.ready();
    spdlog::info("mounted {} at {}", options.store, options.mountpoint);
    served = session->serve();
  }
  const Status closed = engine->close();
  spdlog::info("unmounted {}", options.mountpoint);
  return closed ? served : closed;
}

int run(MountOptions options, Verdict& verdict) {
  start_log(options);
  harden_process();
  const Status served = serve(options, verdict);
  if (served) return 0;
  spdlog::error("{}", describe(served.error()));
  verdict.failed(describe(served.error()));
  return 1;
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) {
  using namespace kvsyncfs;
  auto options = parse_mount_options({argv + 1, argv + argc});
  if (!options) {
    std::fprintf(stderr, "kvsyncfs: %s\n", describe(options.error()).c_str());
    return 2;
  }
  if (options->help) return std::fputs(mount_help().c_str(), stdout) < 0;
  if (options->version) return std::puts("kvsyncfs " KVSYNCFS_VERSION) < 0;
  if (auto ready = prepare(*options); !ready) {
    std::fprintf(stderr, "kvsyncfs: %s\n", describe(ready.error()).c_str());
    return 1;
  }
  return run_daemon(options->foreground, [&](Verdict& verdict) { return run(*options, verdict); });
}
