// Nodes of a cluster with clients on each, what goes wrong meanwhile, and the checks of all that
// the clients were told. One seed is one run, in a process of its own (seed_process.h). Thread:
// threads of the simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/sim/cluster/byte_history.h"
#include "tests/sim/cluster/lock_history.h"
#include "tests/sim/cluster/name_history.h"
#include "tests/sim/cluster/register_history.h"
#include "tests/sim/cluster/seed_process.h"
#include "tests/sim/cluster/sim_node.h"

namespace kvsyncfs {

/// What clients do: everything; or one thing, so that its judge alone finds what is wrong.
enum class ClusterWork { kAll, kNames, kAttributes, kBytes, kValues };

struct ClusterPlan {
  std::size_t nodes = 2;
  std::uint64_t run_ns = 8'000'000'000;  ///< clients and faults
  bool crashes = false, freezes = false, cuts = false, etcd_faults = false, slow_disks = false;
  bool lost_messages = false;       ///< of etcd, of its watches and between the nodes
  bool wrong_clocks = false;        ///< each node's has a rate of its own, and its wall clock jumps
  std::int64_t slow_clock_ppm = 0;  ///< the first node's goes so much slower, more than it may
  bool loses_a_node = false;        ///< for good, at the end: the others make its copies anew
  ClusterWork work = ClusterWork::kAll;  ///< kValues: put and get one value, without a pause
  bool short_log = false;                ///< so that it is trimmed often
  bool short_timeouts = false;           ///< calls end before a lease does
  // Seams that lie, so that the checks have something to find.
  bool forged_acknowledgements = false, ignored_compares = false, forgotten_leases = false,
       lying_disks = false, forged_copies = false;
  std::uint64_t turns_max = 400'000;
};

class ClusterWorld {
 public:
  ClusterWorld(std::uint64_t seed, const ClusterPlan& plan);
  /// The whole run. Its problem, and how many calls were answered and were not.
  SeedRun run();

  SimCluster& cluster() { return cluster_; }

 private:
  static constexpr std::size_t kGroups = 2, kGroupFolders = 2, kRegisters = 7;
  // Files by their numbers; after them keys, whose bytes are judged as a file's.
  static constexpr std::size_t kCellFiles = 2, kLockedFile = kCellFiles,
                               kAppendFile = kLockedFile + 1, kAttributeFile = kAppendFile + 1,
                               kFiles = kAttributeFile + 1, kKeys = 2;
  static constexpr const char* kKeyNames[kKeys] = {"k", "folder/of/k"};
  struct Client {
    SimNode& node;
    SimRandom random;
    bool only_reads = false;  ///< so that it is never stuck in a change
    std::uint64_t owner = 0;  ///< of its locks
    std::map<std::uint64_t, InodeId> known[kGroups] = {};  ///< of each group, by their tokens
  };
  struct Named {
    InodeId folder;
    std::string name;
  };

  void fail(const std::string& why);
  bool format();
  bool make_files();
  void run_clients();
  void run_client(Client& client);
  void run_faults();
  void one_fault();
  void crash(SimNode& node);
  void freeze(SimNode& node);
  void change_link(SimNode& node);
  void change_etcd(SimNode& node);
  void slow_disk(SimNode& node);
  void move_clock(SimNode& node);
  void heal();
  void settle();
  void lose_a_node();
  std::vector<SimNode*> present() const;  ///< all that were not lost
  void check_histories();
  void compare_nodes();
  std::string walk(Engine& engine, InodeId folder, const std::string& path);
  void read_all_at_end(SimNode& node);

  // cluster_name_clients.cc
  std::uint64_t known_node(Client& client, std::size_t group, bool is_folder);
  NamePlace draw_place(Client& client, std::size_t group);
  Named named(const Client& client, std::size_t group, const NamePlace& place) const;
  Status call_name(Client& client, const SimNode::Use& use, std::size_t group, NameOp& op);
  void call_names(Client& client);
  void list_names(Client& client, const SimNode::Use& use, std::size_t group);

  // cluster_attribute_clients.cc
  std::size_t begin_register(Client& client, std::size_t which, RegisterCall call,
                             std::uint64_t value);
  void change_attributes(Client& client);
  void set_attributes(Client& client);
  void read_attributes(Client& client);
  void call_xattr(Client& client);

  // cluster_clients.cc
  void read_something(Client& client);
  void change_something(Client& client);
  void write_file(Client& client);
  /// Into a file whose handle is open: written, and what keeps the bytes.
  void write_cells(Client& client, const SimNode::Use& use, std::size_t file, const char* keeper,
                   const std::function<Status()>& keep);
  /// Into the same: cells become zeros, or those of another file.
  void change_cells(Client& client, const SimNode::Use& use, std::size_t file);
  void lock_file(Client& client);
  void append_record(Client& client);
  void put_value(Client& client);
  void remove_value(Client& client);
  void get_value(Client& client);
  void read_file(Client& client, std::size_t file);
  bool read_into(Engine& engine, InodeId inode, std::string* bytes);
  /// Whether the call's answer counts, and says something; checks that it took no longer than it
  /// may.
  bool is_answer(Client& client, const SimNode::Use& use, const char* call, std::uint64_t begin_ns,
                 const Status& status);

  const std::uint64_t seed_;
  const ClusterPlan plan_;
  SimRandom random_;
  SimCluster cluster_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::uint64_t> frozen_until_ns_;
  std::string problem_;
  bool is_over_ = false;
  std::uint64_t next_number_ = 0, answered_ = 0, unanswered_ = 0, faults_ = 0;
  std::uint64_t rejoined_ = 0;  ///< sessions that a life of a node at the end had before

  std::vector<InodeId> folders_;  // kGroupFolders of each group
  std::vector<InodeId> files_;
  std::vector<std::vector<NameOp>> names_;
  std::vector<std::vector<RegisterOp>> registers_;
  std::vector<FileHistory> bytes_;  // of files and keys
  std::vector<LockHold> holds_[2];  // by kind
};

}  // namespace kvsyncfs
