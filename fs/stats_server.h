// The daemon's side of kvsyncfs-stat(8), kvsyncfs-ctl(8) and umount: counters, barriers and what an
// operator asks, on a Unix socket (fs/run_files.h), by requests of one line (fs/request_server.h).
// Costs the data path nothing: it reads counters when somebody asks, and every 5 s for the history.
// Thread: one, which makes and ends it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "fs/op_metrics.h"
#include "fs/request_server.h"
#include "fs/run_files.h"
#include "fs/stats_report.h"

namespace kvsyncfs {

class StatsServer {
 public:
  /// `heartbeat` is Watchdog::heartbeat(), or -1. What is passed outlives the server.
  StatsServer(Engine& engine, const OpMetrics& metrics, StatsIdentity identity, int heartbeat = -1,
              std::string folder = std::string(kRunFolder));
  ~StatsServer();  ///< as stop()
  StatsServer(const StatsServer&) = delete;
  StatsServer& operator=(const StatsServer&) = delete;

  /// Errors: those of RunFiles::make and RequestServer::start, naming the path.
  Status start();
  /// The document without its history. Thread: any.
  std::string document() const;
  /// Waits for a barrier that runs, and removes the socket.
  void stop();

 private:
  std::uint64_t uptime_ns() const;
  void remember();             // in the server's thread
  StatsReport report() const;  // without the history

  Engine& engine_;
  const OpMetrics& metrics_;
  const StatsIdentity identity_;
  const int heartbeat_;
  const std::string folder_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::deque<PageReads> history_;  // belongs to the server's thread
  std::unique_ptr<RunFiles> files_;
  std::unique_ptr<RequestServer> server_;
};

}  // namespace kvsyncfs
