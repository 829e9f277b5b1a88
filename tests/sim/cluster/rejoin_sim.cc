// A node that loses its session with bytes in its write buffer, step by step, over the same
// simulated seams as cluster_sim.cc: what it keeps and what it drops when it joins again.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <functional>
#include <memory>

#include "tests/sim/cluster/cluster_world.h"
#include "tests/sim/cluster/seed_process.h"
#include "tests/sim/cluster/sim_threads.h"
#include "tests/sim/seeds.h"

namespace kvsyncfs {
namespace {

namespace sim = sim_threads;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// Three nodes; the first is the one that is cut off, so that two are left to hold bytes.
class Outage {
 public:
  explicit Outage(std::uint64_t seed) : cluster_((sim::begin(seed), seed)) {
    sim::set_turn_limit(400'000);
    sim::on_end([](const std::string& why) { end_process(why); });
    std::string secret;
    for (SimNode* node : all_) expect(node->format(secret).empty(), "format");
    for (SimNode* node : all_) node->start();
    wait_for("the nodes to serve", [&] { return one_.use() && two_.use() && three_.use(); });
    sim::sleep(kSecond);
    use_ = one_.use();
  }

  Engine& cut_off() { return use_->engine(); }
  Engine& other() { return two_.use()->engine(); }
  void expect(bool is_so, const std::string& what) {
    if (!is_so && problem.empty()) problem = what;
  }
  void expect(const Status& status, const std::string& what) {
    expect(status.has_value(), what + (status ? "" : ": " + describe(status.error())));
  }
  InodeId make(const char* name) {
    const auto made = cut_off().create(kRootInode, name, plain_file());
    expect(made.has_value(), name);
    return made ? made->inode : InodeId{};
  }
  std::uint64_t open(InodeId file) {
    expect(cut_off().open_handle(file).has_value(), "open");
    return cut_off().next_handle();
  }
  void cut() { link(true); }
  /// Until it goes on, in the same life.
  void heal() {
    link(false);
    std::string why;
    wait_for("the node to go on", [&, number = 0]() mutable {
      const auto made = cut_off().create(kRootInode, fmt::format("s{}", ++number), plain_file());
      if (!made) why = describe(made.error());
      return made.has_value();
    });
    if (!problem.empty()) problem += ": " + why;
    expect(!use_->is_over(), "its life is over");
    expect(cut_off().counters().leases_lost == 1, "it has not lost its session");
  }
  std::string read(Engine& engine, InodeId file) {
    std::string bytes(64, '\0');
    const auto count = engine.read(file, 0, bytes_of(bytes));
    if (!count) return describe(count.error());
    bytes.resize(*count);
    return bytes;
  }
  SeedRun end() {
    use_.reset();
    for (SimNode* node : all_) expect(node->close(), "close");
    return {problem, ""};
  }

  std::string problem;

 private:
  static NewNode plain_file() {
    NewNode node;
    node.mode = S_IFREG | 0644;
    return node;
  }
  void link(bool is_cut) {
    one_.cut_from_etcd(is_cut);
    for (const SimNode* other : {&two_, &three_}) {
      const auto change = is_cut ? &SimNetwork::cut : &SimNetwork::mend;
      (cluster_.network.*change)(one_.id(), other->id());
      (cluster_.network.*change)(other->id(), one_.id());
    }
  }
  void wait_for(const char* what, const std::function<bool()>& is_so) {
    const std::uint64_t until_ns = sim::now_ns() + 60 * kSecond;
    while (!is_so()) {
      if (sim::now_ns() > until_ns) return expect(false, what);
      sim::sleep(50'000'000);
    }
  }

  SimCluster cluster_;
  SimNode one_{cluster_, NodeId{1}}, two_{cluster_, NodeId{2}}, three_{cluster_, NodeId{3}};
  const std::array<SimNode*, 3> all_{&one_, &two_, &three_};
  std::unique_ptr<SimNode::Use> use_;
};

void run(const std::function<void(Outage&)>& steps) {
  const Seeds seeds = seeds_from(1, share_of(10));
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const SeedRun run = run_in_process(
        [&] {
          auto* outage = new Outage(seed);  // for as long as the process
          if (outage->problem.empty()) steps(*outage);
          return outage->problem.empty() ? outage->end() : SeedRun{outage->problem, ""};
        },
        60);
    EXPECT_EQ(run.problem, "") << "seed " << seed;
  }
}

TEST(RejoinSim, BytesThatNobodyOvertookAreWrittenAndOthersAreToldOnce) {
  run([](Outage& o) {
    const InodeId kept = o.make("kept"), lost = o.make("lost");
    const std::uint64_t kept_handle = o.open(kept), lost_handle = o.open(lost);
    o.cut();
    o.expect(o.cut_off().write(kept, 0, as_bytes("mine!")), "write");
    o.expect(o.cut_off().write(lost, 0, as_bytes("mine!")), "write");
    o.expect(o.other().write(lost, 0, as_bytes("their")), "the other's write");
    o.expect(o.other().sync(lost), "the other's fsync");
    o.heal();
    o.expect(o.cut_off().sync(kept), "fsync");
    o.expect(o.cut_off().sync(lost), "fsync");
    o.expect(o.cut_off().check_bytes(kept, kept_handle), "bytes that nobody overtook");
    const Status told = o.cut_off().check_bytes(lost, lost_handle);
    o.expect(!told && told.error().code == Code::kIo, "a loss is not told");
    o.expect(o.cut_off().check_bytes(lost, lost_handle), "a loss is told twice");
    for (Engine* engine : {&o.cut_off(), &o.other()}) {
      o.expect(o.read(*engine, lost) == "their", "newer bytes: " + o.read(*engine, lost));
      o.expect(o.read(*engine, kept) == "mine!", "kept bytes: " + o.read(*engine, kept));
    }
  });
}

TEST(RejoinSim, ALockIsLostAndWhatWasWrittenUnderItAlsoWhereNobodyTookIt) {
  run([](Outage& o) {
    const InodeId file = o.make("locked");
    const std::uint64_t handle = o.open(file);
    bool is_locked = false;
    LockRange range;
    range.inode = file;
    range.kind = LockKind::kFlock;
    range.owner = handle;
    const auto request = o.cut_off().begin_lock(
        [&](const LockAnswer& answer) { is_locked = answer.status.has_value(); });
    o.cut_off().lock(request, range, LockType::kExclusive, true);
    sim::sleep(kSecond);
    o.expect(is_locked, "no lock");
    o.cut();
    o.expect(o.cut_off().write(file, 0, as_bytes("late"), {false, handle}), "write");
    sim::sleep(5 * kSecond);
    o.expect(!o.cut_off().check_handle(file, handle), "a read with a lock that is not proved");
    o.heal();
    for (const Status& said :
         {o.cut_off().check_handle(file, handle), o.cut_off().check_change(file, handle),
          o.cut_off().check_bytes(file, handle),
          o.cut_off().write(file, 0, as_bytes("more"), {false, handle})})
      o.expect(!said && said.error().code == Code::kIo, "a handle that lost its lock goes on");
    o.expect(o.cut_off().sync(file), "fsync");
    o.expect(o.read(o.other(), file).empty(), "bytes of a lost lock: " + o.read(o.other(), file));
    const std::uint64_t again = o.open(file);
    o.expect(o.cut_off().write(file, 0, as_bytes("anew"), {false, again}), "a new handle");
    o.expect(o.cut_off().sync(file), "fsync");
    o.expect(o.read(o.other(), file) == "anew", "its bytes: " + o.read(o.other(), file));
  });
}

TEST(RejoinSim, AnOpenFileThatLostItsNameMeanwhileIsStale) {
  run([](Outage& o) {
    const InodeId gone = o.make("gone"), there = o.make("there");
    const std::uint64_t handle = o.open(gone), other = o.open(there);
    o.cut();
    o.expect(o.cut_off().write(gone, 0, as_bytes("bytes")), "write");
    o.expect(o.other().unlink(kRootInode, "gone"), "unlink");
    o.heal();
    const Status read = o.cut_off().check_handle(gone, handle);
    o.expect(!read && read.error().code == Code::kStale, "a file that is gone");
    static_cast<void>(o.cut_off().sync(gone));
    const Status bytes = o.cut_off().check_bytes(gone, handle);
    o.expect(!bytes && bytes.error().code == Code::kStale, "its bytes");
    o.expect(o.cut_off().check_handle(there, other), "another file");
  });
}

}  // namespace
}  // namespace kvsyncfs
