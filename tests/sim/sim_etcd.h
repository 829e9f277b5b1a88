// An etcd in memory that does what etcd does, as far as a log can tell, and fails as a seed says.
//
// Revisions, versions and transactions are etcd's. Leases end by time, and not while there is no
// leader; a new leader gives each its whole time again. History can be compacted, the store be put
// back to an older state (a backup). Faults, by SimEtcdFaults: a request or its answer is lost; a
// request is carried out long after its sender gave up; there is no space; quorum is away for a
// while; a watch is slow, silent, cut, leaves a put out, or shows the changes of one revision in
// two parts.
//
// A call runs `meanwhile` before and after its effect, so that others act while it is under way.
// Same seed, same calls: same etcd. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/log/etcd/etcd_client.h"
#include "tests/sim/engine_world.h"

namespace kvsyncfs {

struct SimEtcdFaults {  ///< one in so many; 0: never
  std::uint64_t lost_request = 0, lost_answer = 0, late_request = 0;
  std::uint64_t no_space = 0;  ///< said of a change, which is carried out or not
  std::uint64_t slow_watch = 0, silent_watch = 0, cut_watch = 0;
  std::uint64_t gap_watch = 0;  ///< a put is never shown
  // What no etcd does, for tests of tests.
  bool ignores_compares = false;  ///< each transaction is carried out
  bool forgets_leases = false;    ///< after half of their time
};

class SimEtcd {
 public:
  SimEtcd(SimClock& clock, std::uint64_t seed) : clock_(clock), random_(seed) {}

  SimEtcdFaults faults;
  std::function<void()> meanwhile = [] {};
  std::function<void(const etcd::KeyValue&)> on_put = [](const etcd::KeyValue&) {};
  /// A watch has nothing to show: waits for a change, at most until `deadline_ns`.
  std::function<void(std::uint64_t deadline_ns)> await_change = [this](std::uint64_t deadline_ns) {
    const std::uint64_t now_ns = clock_.boot_ns();
    if (deadline_ns > now_ns) clock_.advance(deadline_ns - now_ns);
  };

  /// One client of its own; all see the same etcd, which outlives them.
  std::unique_ptr<etcd::EtcdClient> client();

  // What time does. Requests that are late are carried out, leases end.
  void tick();
  void lose_quorum() { has_quorum_ = false; }
  void elect_leader();  ///< quorum is there again
  bool has_quorum() const { return has_quorum_; }
  bool is_late() const { return !late_.empty(); }  ///< requests are still to be carried out

  struct State;
  std::shared_ptr<const State> backup() const;
  void restore(const std::shared_ptr<const State>& state);  ///< all watches are cut

  bool has(const std::string& key) const;
  std::int64_t revision() const;
  std::size_t key_count() const;

  // What a client asks; no faults.
  Result<etcd::TxnReply> carry_out(const etcd::Txn& txn);
  Result<etcd::RangeReply> range(const etcd::Range& range) const;
  Status compact(std::int64_t revision);

 private:
  friend class SimEtcdClient;
  friend class SimWatch;
  struct LeaseState {
    std::int64_t ttl_s = 0;
    std::uint64_t end_ns = 0;
  };

  bool holds(const etcd::Compare& compare) const;
  void put(const etcd::Put& put, std::int64_t revision);
  void erase(const etcd::Delete& range, std::int64_t revision);
  std::map<std::string, etcd::KeyValue> at(std::int64_t revision) const;

  SimClock& clock_;
  SimRandom random_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  struct Late {
    std::uint64_t due_ns = 0;
    etcd::Txn txn;
  };
  std::vector<Late> late_;
  bool has_quorum_ = true;
  std::uint64_t restores_ = 0;

 public:
  struct State {
    std::int64_t revision = 1, compacted = 0, next_lease = 1000;
    std::map<std::string, etcd::KeyValue> keys;
    std::vector<etcd::KeyValue> changes;  ///< all; version 0: deleted
    std::map<std::int64_t, LeaseState> leases;
  };
};

}  // namespace kvsyncfs
