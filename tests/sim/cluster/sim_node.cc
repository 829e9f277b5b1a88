#include "tests/sim/cluster/sim_node.h"

#include <fmt/format.h>

#include <utility>

#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_store.h"
#include "engine/log/etcd/etcd_log.h"
#include "tests/sim/cluster/seed_process.h"
#include "tests/sim/cluster/sim_node_seams.h"
#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {

namespace sim = sim_threads;

namespace {
constexpr std::uint64_t kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;

void tell(const std::string& name, std::string_view text) {
  if (tells_more())
    fmt::print("{:.6f} {}: {}\n", static_cast<double>(sim::now_ns()) / 1e9, name, text);
}
}  // namespace

Timestamp ThreadClock::now() {
  const std::uint64_t ns = sim::shown_wall_ns();
  return {static_cast<std::int64_t>(ns / kSecond), static_cast<std::uint32_t>(ns % kSecond)};
}
std::uint64_t ThreadClock::boot_ns() { return sim::shown_ns(sim::now_ns()); }
void ThreadClock::advance(std::uint64_t ns) { sim::sleep_until(sim::time_of(boot_ns() + ns)); }

std::uint64_t TrueClock::boot_ns() { return sim::now_ns(); }
void TrueClock::advance(std::uint64_t ns) { sim::sleep(ns); }

SimCluster::SimCluster(std::uint64_t seed)
    : random(seed), etcd(etcd_clock, seed + 1), network(seed + 2) {
  etcd.on_put = [this](const etcd::KeyValue&) { sim::wake(&etcd); };
  etcd.await_change = [this](std::uint64_t deadline_ns) {
    static_cast<void>(sim::wait(&etcd, deadline_ns));
  };
}

class SimNode::Life {
 public:
  Life(SimNode& node, std::shared_ptr<LifeState> state)
      : node_(node),
        state_(std::move(state)),
        disk_(make_life_disk(*node.disk_, state_)),
        etcd_(make_life_etcd(node.cluster_.etcd.client(), state_)),
        tasks_(node.cluster_.clock) {}

  Status open() {
    SimCluster& cluster = node_.cluster_;
    KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(*disk_, kStore));
    VolumeRecordStore records(*etcd_, cluster.clock, config.volume);
    KVSYNCFS_ASSIGN(const VolumeRecord volume,
                    records.confirm(config, cluster.clock.boot_ns() + cluster.timeout_ns));
    KVSYNCFS_ASSIGN(const std::uint64_t incarnation,
                    next_incarnation(*etcd_, cluster.clock, config.volume, config.node, 1));
    transport_ =
        std::make_unique<SimTransport>(cluster.network, config.id, Incarnation{incarnation});
    seams_ = std::make_unique<ClusterSeams>(ClusterSeams{*etcd_, *transport_, tasks_});
    seams_->volume = config.volume;
    seams_->node_name = config.node;
    seams_->node = config.id;
    seams_->incarnation = {incarnation};
    seams_->addresses = {config.listen};
    seams_->replicas = volume.replicas;
    seams_->lease_ttl_s = cluster.lease_ttl_s;
    seams_->log_size_bytes = cluster.log_size_bytes;
    seams_->version = "sim";
    EngineOptions options;
    options.store = kStore;
    options.cache_size_bytes = 1 << 20;
    options.write_buffer_bytes = 1 << 20;
    options.timeout_ns = cluster.timeout_ns;
    options.heal_delay_ns = cluster.heal_delay_ns;
    options.cluster = seams_.get();
    options.warn = [name = node_.name()](std::string_view text) { tell(name, text); };
    KVSYNCFS_ASSIGN(engine_, Engine::open(*disk_, cluster.clock, node_.random_, options));
    workers_ = std::make_unique<Workers>(*engine_, cluster.clock);
    is_open_ = true;
    return {};
  }

  void sever(bool quietly) {
    state_->is_over = true;
    is_open_ = false;
    if (transport_) transport_->die(quietly);
    sim::wake(this);
  }
  Status close_in_order() {
    is_open_ = false;
    await_users();
    workers_.reset();
    const Status closed = engine_->close();
    sever(false);
    return closed;
  }
  /// After sever(): everything of it ends.
  void tear_down() {
    await_users();
    workers_.reset();
    if (transport_) transport_->stop();
    engine_.reset();
  }

  bool is_open() const { return is_open_; }
  bool is_over() const { return state_->is_over; }
  Engine& engine() { return *engine_; }
  void enter() { ++users_; }
  void leave() {
    --users_;
    sim::wake(&users_);
  }

 private:
  void await_users() {
    while (users_ > 0) static_cast<void>(sim::wait(&users_, sim::kForever));
  }

  SimNode& node_;
  const std::shared_ptr<LifeState> state_;
  const std::unique_ptr<Disk> disk_;
  const std::unique_ptr<etcd::EtcdClient> etcd_;
  std::unique_ptr<SimTransport> transport_;
  TaskThreads tasks_;
  std::unique_ptr<ClusterSeams> seams_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Workers> workers_;
  bool is_open_ = false;
  int users_ = 0;
};

SimNode::Use::Use(std::shared_ptr<Life> life) : life_(std::move(life)) { life_->enter(); }
SimNode::Use::~Use() { life_->leave(); }
Engine& SimNode::Use::engine() const { return life_->engine(); }
bool SimNode::Use::is_over() const { return life_->is_over(); }

SimNode::SimNode(SimCluster& cluster, NodeId id)
    : cluster_(cluster), id_(id), random_(id.value), disk_(std::make_unique<SimDisk>()) {}
SimNode::~SimNode() = default;

std::string SimNode::format(std::string& secret) {
  if (!disk_->make_directory(kStore) || !disk_->sync_directory("/")) return "no folder";
  FormatOptions options;
  options.store = kStore;
  options.size_bytes = kStoreSizeMin;
  ClusterFormat format;
  format.config.volume = "v";
  format.config.endpoints = {"h:2379"};
  format.config.node = name();
  format.config.listen = "10.0.0." + std::to_string(id_.value) + ":7420";
  format.join = !secret.empty();
  format.secret = secret;
  format.replicas = static_cast<std::uint32_t>(cluster_.replicas);
  const auto client = cluster_.etcd.client();
  const auto made = format_cluster_store(*disk_, cluster_.clock, random_, *client, options, format);
  if (!made) return describe(made.error());
  secret = *read_volume_secret(*disk_, std::string(kStore) + "/secret");
  return {};
}

void SimNode::start() {
  supervisor_ = std::thread([this] {
    sim::join_group(static_cast<unsigned>(id_.value), name());
    run();
  });
}

void SimNode::run() {
  while (!is_closing_) {
    if (next_life_ns_ > sim::now_ns()) sim::sleep_until(next_life_ns_);
    const auto state = std::make_shared<LifeState>();
    state->disk_lies = cluster_.disks_lie;
    state->is_cut = [this] { return etcd_is_cut_; };
    state->sync_ns = [this] {
      return sim::now_ns() < disk_slow_until_ns_ ? disk_sync_ns_
                                                 : 20 * kMicrosecond + random_.next() % 80'000;
    };
    const auto life = life_ = std::make_shared<Life>(*this, state);
    const Status opened = life->open();
    if (!opened) tell(name(), "open: " + describe(opened.error()));
    if (!opened) {
      life->sever(false);
      next_life_ns_ = std::max(next_life_ns_, sim::now_ns() + 300 * kMillisecond);
    }
    sim::wake(this);
    while (!life->is_over() && !is_closing_)
      static_cast<void>(sim::wait(life.get(), sim::kForever));
    if (is_closing_) return;
    std::thread([life] { life->tear_down(); }).detach();
  }
}

void SimNode::crash(bool power, std::uint64_t after_ns) {
  if (life_) life_->sever(power);
  if (power)
    disk_->crash(random_.next());
  else
    disk_->kill();
  next_life_ns_ = sim::now_ns() + after_ns;
}

void SimNode::stay_away() {
  is_away_ = is_closing_ = true;
  crash(true, 0);
}

void SimNode::broken() {
  if (life_ && !life_->is_over() && !is_closing_) crash(false, 200 * kMillisecond);
}

Status SimNode::close() {
  if (is_away_) return {};
  is_closing_ = true;
  const Status closed = life_ && life_->is_open() ? life_->close_in_order() : Status{};
  sim::wake(life_.get());
  supervisor_.join();
  if (life_) life_->tear_down();
  return closed;
}

std::unique_ptr<SimNode::Use> SimNode::use() {
  return life_ && life_->is_open() ? std::make_unique<Use>(life_) : nullptr;
}

void SimNode::slow_disk_until(std::uint64_t until_ns, std::uint64_t sync_ns) {
  disk_slow_until_ns_ = until_ns;
  disk_sync_ns_ = sync_ns;
}

}  // namespace kvsyncfs
