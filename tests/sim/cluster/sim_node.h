// A node of a simulated cluster: its disk, and one life of its daemon after the other, each wired
// as open_store.cc wires a real one. Thread: threads of the simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "engine/cluster_seams.h"
#include "engine/engine.h"
#include "engine/task_threads.h"
#include "engine/workers.h"
#include "tests/sim/cluster/sim_network.h"
#include "tests/sim/engine_world.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {

/// The clocks of the calling thread's node (sim_threads.h).
class ThreadClock final : public SimClock {
 public:
  Timestamp now() override;
  std::uint64_t boot_ns() override;
  void advance(std::uint64_t ns) override;
};

/// Time itself.
class TrueClock final : public SimClock {
 public:
  std::uint64_t boot_ns() override;
  void advance(std::uint64_t ns) override;
};

/// What all nodes share.
struct SimCluster {
  explicit SimCluster(std::uint64_t seed);
  ThreadClock clock;
  TrueClock etcd_clock;
  SimRandom random;
  SimEtcd etcd;
  SimNetwork network;
  std::size_t replicas = 2;
  std::uint64_t timeout_ns = 6'000'000'000;
  std::int64_t lease_ttl_s = 2;
  std::uint64_t heal_delay_ns = 8'000'000'000;
  std::uint64_t log_size_bytes = 1 << 30;
  bool disks_lie = false;  ///< a sync makes nothing durable
};

class SimNode {
 public:
  /// One life of the daemon.
  class Life;
  /// Keeps a life's engine while it is used; what it is asked after the life's end fails.
  class Use {
   public:
    explicit Use(std::shared_ptr<Life> life);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Engine& engine() const;
    bool is_over() const;  ///< the life: nobody gets an answer from it any more

   private:
    std::shared_ptr<Life> life_;
  };

  static constexpr const char* kStore = "/store";

  SimNode(SimCluster& cluster, NodeId id);
  ~SimNode();

  NodeId id() const { return id_; }
  std::string name() const { return "n" + std::to_string(id_.value); }
  SimDisk& disk() { return *disk_; }

  /// The first node makes the volume, which gives the secret; others join. Empty: it went well.
  std::string format(std::string& secret);
  /// Begins to live, and again after each end, until close().
  void start();
  /// The present life ends now; the next one begins in `after_ns`. With `power` the disk loses
  /// what was not synced, and the other nodes hear nothing of it.
  void crash(bool power, std::uint64_t after_ns);
  /// It is lost, for good.
  void stay_away();
  bool is_away() const { return is_away_; }
  /// No life begins any more; the present one ends in order. Its error.
  Status close();

  /// Null: it does not serve now.
  std::unique_ptr<Use> use();
  /// Its engine said that it cannot go on: ends the life.
  void broken();

  void slow_disk_until(std::uint64_t until_ns, std::uint64_t sync_ns);
  void cut_from_etcd(bool is_cut) { etcd_is_cut_ = is_cut; }

 private:
  friend class Life;
  void run();

  SimCluster& cluster_;
  const NodeId id_;
  SimRandomSource random_;
  std::unique_ptr<SimDisk> disk_;
  std::shared_ptr<Life> life_;  // the latest
  bool is_closing_ = false, is_away_ = false, etcd_is_cut_ = false;
  std::uint64_t next_life_ns_ = 0;
  std::uint64_t disk_slow_until_ns_ = 0, disk_sync_ns_ = 0;
  std::thread supervisor_;
};

}  // namespace kvsyncfs
