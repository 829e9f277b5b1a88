// Several nodes that append to one EtcdLog over a simulated etcd, and the checker of what they see.
//
// The truth is the order in which etcd took the batches. Checked all along: each node applies that
// order and no position twice or never; a confirmed entry is at its position; no entry is there
// twice; an entry that was refused for good is not there; nothing of a session follows its End; a
// lease that a node takes for valid is one. Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/log/etcd/etcd_log.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {

class EtcdWorld {
 public:
  EtcdWorld(std::uint64_t seed, std::size_t node_count);
  ~EtcdWorld();

  /// Empty, or what went wrong; nothing is done after that.
  const std::string& problem() const { return problem_; }
  SimEtcd& etcd() { return etcd_; }

  void run(int steps);
  /// No more faults: every node that lives reaches the tail with all it was asked for done.
  void heal();
  /// Puts etcd back to the state of the last take_backup(). What is lost there is lost.
  void take_backup();
  void restore();
  /// Every node that had applied more than etcd knows now refuses to go on.
  void expect_ahead_nodes_refuse();

  std::uint64_t entry_count() const { return truth_.size(); }
  std::uint64_t confirmed_count() const { return confirmed_; }
  std::uint64_t rejoined_count() const { return rejoined_; }
  EtcdLogCounters counters() const { return counters_; }  ///< of logs that are gone

 private:
  struct Sent {
    EtcdLog::Ticket ticket;
    std::string entry;
    std::string end_of;  ///< session's name, if it is an End
  };
  struct Node {
    std::string name;
    std::unique_ptr<etcd::EtcdClient> client;
    std::unique_ptr<EtcdLog> log;
    std::uint64_t incarnation = 0;
    std::vector<std::string> applied;  ///< its catalog: survives; [0] is position 1
    std::vector<Sent> sent;
    AppliedBatch known;  ///< with it
    std::uint64_t frozen_until_ns = 0;
    bool watching = false, keeping = false, trimming = false;
    bool refused = false;  ///< ended by itself: kCorrupt, kStale
  };

  void fail(const std::string& problem);
  static std::string session_name(const std::string& node, std::uint64_t incarnation);
  void note_put(const etcd::KeyValue& put);
  void note_entries(const std::string& value);
  void check_applied(Node& node, Position position, std::string_view entry);
  void check_lease(Node& node);
  void check_result(Node& node, const Sent& sent, const Result<Position>& result);

  void act();  ///< something, by some node
  void step(Node& node);
  void open(Node& node);
  void crash(Node& node);
  void submit(Node& node);
  void submit_end(Node& node);
  void follow(Node& node, std::uint64_t wait_ns);
  void keep(Node& node);
  void rejoin(Node& node);
  void submit_own_end(Node& node, std::uint64_t incarnation);
  void trim(Node& node);
  void collect(Node& node);
  void drive(Node& node);

  SimClock clock_;
  SimRandom random_;
  SimEtcd etcd_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::string problem_;
  int depth_ = 0;
  std::uint64_t names_ = 0;

  std::optional<etcd::KeyValue> batch_;  ///< put, its count not yet
  AppliedBatch newest_;                  ///< with the end of the truth
  std::vector<std::string> truth_;       ///< [0] is position 1
  std::vector<std::string> sessions_;    ///< all that ever were, "node/incarnation"
  std::set<std::string> seen_, ended_, forbidden_;
  std::uint64_t confirmed_ = 0, rejoined_ = 0;
  EtcdLogCounters counters_;
  struct Backup {
    std::shared_ptr<const SimEtcd::State> state;
    std::size_t entries = 0;
    std::set<std::string> seen, ended;
    AppliedBatch newest;
  };
  Backup backup_;
  bool restored_ = false;
};

}  // namespace kvsyncfs
