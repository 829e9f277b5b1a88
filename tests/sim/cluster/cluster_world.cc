#include "tests/sim/cluster/cluster_world.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {

namespace sim = sim_threads;

namespace {
constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr std::size_t kClientsPerNode = 3;    // the first only reads
constexpr std::int64_t kRateMaxPpm = 10'000;  // what no clock is off by; a lease bears more
constexpr std::uint64_t kSettleNs = 90 * kSecond, kLeaseGoneNs = 5 * kSecond;
/// What the calling thread does meanwhile it does on the node, by its clock.
class AtNode {
 public:
  explicit AtNode(const SimNode& node) { join(static_cast<unsigned>(node.id().value)); }
  ~AtNode() { join(0); }
  AtNode(const AtNode&) = delete;
  AtNode& operator=(const AtNode&) = delete;

 private:
  static void join(unsigned group) { sim::join_group(group, "world"); }
};
}  // namespace

ClusterWorld::ClusterWorld(std::uint64_t seed, const ClusterPlan& plan)
    : seed_(seed),
      plan_(plan),
      random_(seed),
      cluster_((sim::begin(seed), seed)),
      frozen_until_ns_(plan.nodes),
      names_(kGroups),
      registers_(kRegisters),
      bytes_(kFiles + kKeys) {
  sim::set_turn_limit(plan.turns_max);
  sim::on_end([](const std::string& why) { end_process(why); });
  cluster_.disks_lie = plan.lying_disks;
  SimRandom rates(seed);
  for (unsigned id = 1; plan.wrong_clocks && id <= plan.nodes; ++id)
    sim::set_clock_rate(id, static_cast<std::int64_t>(rates.below(2 * kRateMaxPpm)) - kRateMaxPpm);
  if (plan.slow_clock_ppm != 0) sim::set_clock_rate(1, -plan.slow_clock_ppm);
  if (plan.short_log) cluster_.log_size_bytes = 64 << 10;
  if (plan.short_timeouts) cluster_.timeout_ns = kSecond;
  for (std::uint64_t id = 1; id <= plan.nodes; ++id)
    nodes_.push_back(std::make_unique<SimNode>(cluster_, NodeId{id}));
}

void ClusterWorld::fail(const std::string& why) {
  if (problem_.empty())
    problem_ = fmt::format("{:.6f}: {}", static_cast<double>(sim::now_ns()) / 1e9, why);
}

SeedRun ClusterWorld::run() {
  if (format() && make_files()) {
    run_clients();
    heal();
    if (problem_.empty()) settle();
    if (problem_.empty() && plan_.loses_a_node) lose_a_node();
    if (problem_.empty()) compare_nodes();
    for (SimNode* node : present())
      if (problem_.empty()) read_all_at_end(*node);
    check_histories();
    heal();
    for (SimNode* node : present())
      if (const auto use = node->use()) rejoined_ += use->engine().counters().leases_lost;
    for (SimNode* node : present())
      if (problem_.empty()) {
        const AtNode at(*node);
        if (const Status closed = node->close(); !closed)
          fail(node->name() + " did not close: " + describe(closed.error()));
      }
  }
  return {
      problem_,
      fmt::format("answered {} unanswered {} faults {} rejoined {} turns {} seconds {}", answered_,
                  unanswered_, faults_, rejoined_, sim::turns(), sim::now_ns() / kSecond)};
}

bool ClusterWorld::format() {
  std::string secret;
  for (const auto& node : nodes_)
    if (const std::string why = node->format(secret); !why.empty()) {
      fail("format of " + node->name() + ": " + why);
      return false;
    }
  for (const auto& node : nodes_) node->start();
  return true;
}

bool ClusterWorld::make_files() {
  const std::uint64_t until_ns = sim::now_ns() + 30 * kSecond;
  while (std::any_of(nodes_.begin(), nodes_.end(), [](auto& node) { return !node->use(); })) {
    if (sim::now_ns() > until_ns) {
      fail("the nodes do not come up");
      return false;
    }
    sim::sleep(10 * kMillisecond);
  }
  sim::sleep(kSecond);  // they know each other
  const AtNode at(*nodes_[0]);
  const auto use = nodes_[0]->use();
  NewNode node;
  for (std::size_t i = 0; i < kGroups * kGroupFolders + kFiles; ++i) {
    const bool is_folder = i < kGroups * kGroupFolders;
    node.mode = is_folder ? S_IFDIR | 0755 : S_IFREG | 0644;
    const auto made = use->engine().create(kRootInode, "f" + std::to_string(i), node);
    if (!made) {
      fail("create: " + describe(made.error()));
      return false;
    }
    (is_folder ? folders_ : files_).push_back(made->inode);
  }
  AttributeChange known;
  known.mode = 0;
  known.atime = known.mtime = Timestamp{};
  if (!use->engine().set_attributes(files_[kAttributeFile], known)) fail("no attributes");
  return true;
}

void ClusterWorld::run_clients() {
  std::vector<std::thread> threads;
  for (const auto& node : nodes_)
    for (std::size_t i = 0; i < kClientsPerNode; ++i)
      threads.emplace_back([this, &node, i, seed = random_.below(1u << 30)] {
        sim::join_group(static_cast<unsigned>(node->id().value), "client");
        Client client{*node, SimRandom(seed), i == 0, node->id().value * 100 + i};
        run_client(client);
      });
  if (plan_.lost_messages) {
    cluster_.network.faults = {.lost_call = 60, .slow_call = 60};
    cluster_.etcd.faults = {.lost_request = 50,
                            .lost_answer = 50,
                            .late_request = 80,
                            .slow_watch = 20,
                            .silent_watch = 40,
                            .cut_watch = 60,
                            .gap_watch = 40};
  }
  cluster_.etcd.faults.forgets_leases = plan_.forgotten_leases;
  cluster_.network.faults.forges_copies = plan_.forged_copies;
  cluster_.network.faults.forges_acknowledgements = plan_.forged_acknowledgements;
  cluster_.etcd.faults.ignores_compares = plan_.ignored_compares;
  run_faults();
  is_over_ = true;
  heal();
  for (std::thread& thread : threads) thread.join();
}

void ClusterWorld::run_faults() {
  const std::uint64_t end_ns = sim::now_ns() + plan_.run_ns;
  while (sim::now_ns() < end_ns && problem_.empty()) {
    sim::sleep(50 * kMillisecond + random_.below(kSecond));
    cluster_.etcd.tick();
    one_fault();
  }
}

void ClusterWorld::one_fault() {
  std::vector<void (ClusterWorld::*)(SimNode&)> kinds;
  if (plan_.crashes) kinds.push_back(&ClusterWorld::crash);
  if (plan_.freezes) kinds.push_back(&ClusterWorld::freeze);
  if (plan_.cuts) kinds.push_back(&ClusterWorld::change_link);
  if (plan_.cuts) kinds.push_back(&ClusterWorld::change_link);
  if (plan_.etcd_faults) kinds.push_back(&ClusterWorld::change_etcd);
  if (plan_.wrong_clocks) kinds.push_back(&ClusterWorld::move_clock);
  if (plan_.slow_disks) kinds.push_back(&ClusterWorld::slow_disk);
  if (kinds.empty()) return;
  ++faults_;
  (this->*kinds[random_.below(kinds.size())])(*nodes_[random_.below(nodes_.size())]);
}

void ClusterWorld::crash(SimNode& node) {
  node.crash(random_.one_in(2), random_.below(4 * kSecond));
}

void ClusterWorld::freeze(SimNode& node) {
  std::uint64_t& until_ns = frozen_until_ns_[node.id().value - 1];
  until_ns = sim::now_ns() + random_.below(6 * kSecond);
  sim::freeze(static_cast<unsigned>(node.id().value), until_ns);
}

void ClusterWorld::change_link(SimNode& node) {
  SimNode& other = *nodes_[random_.below(nodes_.size())];
  SimNetwork& network = cluster_.network;
  switch (random_.below(6)) {
    case 0:
      network.cut(node.id(), other.id());
      break;
    case 1:
      network.cut(node.id(), other.id());
      network.cut(other.id(), node.id());
      break;
    case 2:
      network.reset(node.id(), other.id());
      break;
    case 3:
      network.stall(node.id(), other.id(), sim::now_ns() + random_.below(3 * kSecond));
      break;
    default:
      network.mend(node.id(), other.id());
      network.mend(other.id(), node.id());
  }
}

void ClusterWorld::change_etcd(SimNode& node) {
  if (random_.one_in(2)) {
    node.cut_from_etcd(random_.one_in(2));
  } else if (!cluster_.etcd.has_quorum()) {
    cluster_.etcd.elect_leader();
  } else if (random_.one_in(2)) {
    cluster_.etcd.lose_quorum();
  }
}

void ClusterWorld::slow_disk(SimNode& node) {
  node.slow_disk_until(sim::now_ns() + random_.below(4 * kSecond), random_.below(kSecond));
}

/// A wall clock goes ahead or back, by up to an hour.
void ClusterWorld::move_clock(SimNode& node) {
  const auto hour = static_cast<std::int64_t>(3600 * kSecond);
  const auto by_ns = static_cast<std::int64_t>(random_.below(7200 * kSecond)) - hour;
  sim::move_wall_clock(static_cast<unsigned>(node.id().value), by_ns);
}

void ClusterWorld::heal() {
  cluster_.network.faults = {};
  cluster_.etcd.faults = {};
  if (!cluster_.etcd.has_quorum()) cluster_.etcd.elect_leader();
  for (const auto& node : nodes_) {
    sim::freeze(static_cast<unsigned>(node->id().value), 0);
    node->cut_from_etcd(false);
    node->slow_disk_until(0, 0);
    for (const auto& other : nodes_) {
      cluster_.network.mend(node->id(), other->id());
      cluster_.network.stall(node->id(), other->id(), 0);
    }
  }
}

std::vector<SimNode*> ClusterWorld::present() const {
  std::vector<SimNode*> all;
  for (const auto& node : nodes_)
    if (!node->is_away()) all.push_back(node.get());
  return all;
}

/// The copies of a node that is lost are made anew, and each node can do without the others then.
void ClusterWorld::lose_a_node() {
  nodes_[random_.below(nodes_.size())]->stay_away();
  const std::uint64_t until_ns = sim::now_ns() + cluster_.heal_delay_ns + kSettleNs;
  sim::sleep(cluster_.heal_delay_ns + 5 * kSecond);
  const auto lack = [](SimNode* node) {
    const auto use = node->use();
    return !use || use->engine().counters().at_risk_segments != 0;
  };
  auto nodes = present();
  while (std::any_of(nodes.begin(), nodes.end(), lack)) {
    if (sim::now_ns() > until_ns) return fail("segments are not healed");
    sim::sleep(kSecond);
  }
  for (SimNode* node : nodes) node->crash(random_.one_in(2), 0);  // nothing in memory
  settle();
  for (SimNode* node : nodes)
    for (SimNode* other : nodes)
      if (node != other) cluster_.network.cut(node->id(), other->id());
}

/// All nodes serve, know each other and have the same log, and a change goes through.
void ClusterWorld::settle() {
  const std::uint64_t until_ns = sim::now_ns() + kSettleNs;
  sim::sleep(kLeaseGoneNs);  // a lease that nobody renewed meanwhile may still end
  std::string last = "no node serves";
  for (int change = 0; sim::now_ns() < until_ns; ++change) {
    sim::sleep(200 * kMillisecond);
    cluster_.etcd.tick();
    std::vector<std::unique_ptr<SimNode::Use>> uses;
    const auto nodes = present();
    for (SimNode* node : nodes) uses.push_back(node->use());
    if (std::count(uses.begin(), uses.end(), nullptr) != 0) {
      last = "a node does not come back";
      continue;
    }
    bool is_done = true;
    for (const auto& use : uses) {
      const AtNode at(*nodes[static_cast<std::size_t>(&use - uses.data())]);
      NewNode node;
      node.mode = S_IFREG | 0644;
      const auto made =
          use->engine().create(kRootInode, fmt::format("s{}-{}", change, &use - uses.data()), node);
      if (!made) last = "create: " + describe(made.error());
      const Status synced = made ? use->engine().sync_all() : Status{};
      if (!synced) last = "sync_all: " + describe(synced.error());
      is_done = is_done && made && synced;
    }
    if (!is_done) {
      for (std::size_t i = 0; i < uses.size(); ++i)
        if (const Status failure = uses[i]->engine().failure(); !failure) {
          if (failure.error().code != Code::kStale)
            return fail(nodes[i]->name() + " gave up: " + describe(failure.error()));
          nodes[i]->broken();
        }
      continue;
    }
    sim::sleep(kSecond);  // orphans and healing may still go on
    return;
  }
  fail("the cluster does not recover: " + last);
}

namespace {
std::string xattrs_of(Engine& engine, InodeId inode) {
  std::string text;
  if (const auto names = engine.xattr_names(inode))
    for (const std::string& name : *names)
      if (const auto value = engine.xattr(inode, name)) text += name + '=' + *value + ' ';
  return text;
}
}  // namespace

std::string ClusterWorld::walk(Engine& engine, InodeId folder, const std::string& path) {
  std::string text;
  const auto entries = engine.list(folder, 0, 10'000, true);
  if (!entries) {
    fail("list: " + describe(entries.error()));
    return {};
  }
  for (const ListEntry& entry : *entries) {
    const Inode& inode = entry.attributes;
    std::string bytes;
    if (is_regular(inode) && !read_into(engine, entry.dentry.inode, &bytes))
      fail("a file cannot be read: " + path + entry.dentry.name);
    text += fmt::format(
        "{}{} {} mode {:o} uid {} gid {} links {} size {} change {} mtime {}.{} ctime {}.{} "
        "cookie {} -> {} bytes {} {}\n",
        path, entry.dentry.name, entry.dentry.inode.value, inode.mode, inode.uid, inode.gid,
        inode.link_count, inode.size, inode.change, inode.mtime.seconds, inode.mtime.nanoseconds,
        inode.ctime.seconds, inode.ctime.nanoseconds, entry.dentry.cookie, inode.target,
        std::hash<std::string>()(bytes), xattrs_of(engine, entry.dentry.inode));
    if (is_directory(inode))
      text += walk(engine, entry.dentry.inode, path + entry.dentry.name + "/");
  }
  return text;
}

void ClusterWorld::compare_nodes() {
  std::string first;
  for (SimNode* node : present()) {
    const auto use = node->use();
    if (!use) return fail(node->name() + " does not serve any more");
    const AtNode at(*node);
    const std::string tree = walk(use->engine(), kRootInode, "/");
    if (first.empty()) first = tree;
    if (tree != first)
      fail(fmt::format("the catalogs differ:\n{}{}:\n{}", first, node->name(), tree));
  }
}

void ClusterWorld::read_all_at_end(SimNode& node) {
  const AtNode at(node);
  Client client{node, SimRandom(seed_)};
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const std::size_t before = bytes_[file].reads.size();
    read_file(client, file);
    if (bytes_[file].reads.size() == before)
      fail(fmt::format("file {} cannot be read on {}", file, node.name()));
  }
}

void ClusterWorld::check_histories() {
  for (const auto& group : names_)
    if (const std::string why = check_names(group); !why.empty()) fail(why);
  for (std::size_t i = 0; i < kRegisters; ++i)
    if (const std::string why = check_register("attribute " + std::to_string(i), 0, registers_[i]);
        !why.empty())
      fail(why);
  for (std::size_t file = 0; file < bytes_.size(); ++file) {
    const std::string name = "file " + std::to_string(file);
    const std::string why =
        file != kAppendFile ? check_cells(name, bytes_[file]) : check_appends(name, bytes_[file]);
    if (!why.empty()) fail(why);
  }
  for (std::size_t key = kFiles; key < bytes_.size(); ++key)
    for (const ByteRead& read : bytes_[key].reads)
      if (!read.bytes.empty() && !is_one_value(read.bytes)) fail("a value in parts: " + read.bytes);
  for (const auto& holds : holds_)
    if (const std::string why = check_locks(holds); !why.empty()) fail(why);
}

}  // namespace kvsyncfs
