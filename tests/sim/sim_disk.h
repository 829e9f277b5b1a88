// A disk in memory that forgets, tears and fails, as a seed says. Direct and buffered files alike.
//
// What is on stable storage: the bytes and the size of a file that were there at its last sync(),
// and the names that a directory had at its last sync_directory(); a file's sync() makes no name
// durable. All else is up to crash(): of each later write every sector by itself, of each later
// create, rename and removal either a prefix in their order or any subset.
//
// The usual test: run a history once and ask changes(); then for each n up to it run again on a new
// disk after stop_at(n), until the history ends or fails, and for some seeds open what
// after_crash(seed) left.
//
// Same calls, same seed: same disk, if one thread calls. Thread: any; one mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/env/disk.h"
#include "tests/sim/sim_image.h"

namespace kvsyncfs {

class SimDisk final : public Disk {
 public:
  /// Files may hold `capacity_bytes` together; more is kNoSpace.
  explicit SimDisk(std::uint64_t capacity_bytes = std::uint64_t{256} << 20);

  // Crashes. All open files are dead afterwards (kIo) and faults that were asked for are forgotten.

  /// The power fails: what was not synced is there, gone or torn.
  void crash(std::uint64_t seed);
  /// The process dies: nothing is lost, and nothing becomes durable by that.
  void kill();
  /// Another disk with what crash(seed) would leave here; this one stays as it is.
  std::unique_ptr<SimDisk> after_crash(std::uint64_t seed) const;

  // Faults. Changes are writes, syncs, allocations, truncations and operations on names, counted
  // from 1 and over crashes; opening a file that is there and reading are no changes.

  std::uint64_t changes() const;
  /// Change number `change` is the last: it happens, perhaps, and fails; from then on all calls
  /// fail with kIo until crash() or kill().
  void stop_at(std::uint64_t change);
  bool stopped() const;
  /// Change number `change` has no effect and fails with `code`, once. A failed sync loses for good
  /// what it was to make durable, though reads see it until the crash.
  void fail_change(std::uint64_t change, Code code);
  /// The `count`-th read from now (1: the next) fails with kIo, once.
  void fail_read(std::uint64_t count);
  /// From now on files may hold so much; less than they do means that none can grow.
  void set_capacity(std::uint64_t bytes);
  std::uint64_t used() const;
  /// Flips the bits of `mask` in a byte, now and for good. Requires that the file has it.
  void flip(const std::string& path, std::uint64_t offset, unsigned char mask = 1);

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                     bool direct = false) override;
  Status remove(const std::string& path) override;
  /// Not of directories: kUnsupported.
  Status rename(const std::string& from, const std::string& to) override;
  Status make_directory(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Status sync_directory(const std::string& directory) override;
  Result<bool> exists(const std::string& path) override;
  Result<bool> is_directory(const std::string& path) override;
  Result<std::uint64_t> size_of(const std::string& path) override;
  Result<DiskSpace> space(const std::string& path) override;

 private:
  class OpenFile;
  struct Node {
    bool directory = false;
    SimImage current, durable;
    std::vector<SimChange> pending;  // since the last sync; what a failed sync lost is in neither
    std::uint64_t pending_bytes = 0;
  };
  using NodePtr = std::shared_ptr<Node>;  // open files outlive their names
  using Names = std::map<std::string, NodePtr>;
  struct NameChange {
    enum class Kind { kAdd, kRemove, kRename } kind;
    std::string path, from;  // `from`: kRename
    NodePtr node;
  };
  /// How a change begins. Without a value: it may go on.
  enum class Verdict { kGoOn, kStopsHere };

  static std::string normal(const std::string& path);
  static std::string parent(const std::string& path);
  static bool has_directory(const Names& names, const std::string& path);
  static void apply_name(Names& names, const NameChange& change);
  static void drop_lost_folders(Names& names);

  // Under mutex_, all below.
  Status check_running() const;
  Result<Verdict> begin_change();
  Status end_change(Verdict verdict) const;
  Result<NodePtr> find(const std::string& path) const;
  Status change_name(NameChange change);
  Status change_bytes(Node& node, SimChange change, std::uint64_t generation);
  static void write_back(Node& node);
  Status sync_node(Node& node, std::uint64_t generation);
  Result<std::size_t> read_node(const Node& node, std::uint64_t offset, MutableBytes out,
                                std::uint64_t generation);
  Status check_alive(std::uint64_t generation) const;
  void survive(const SimDisk& from, std::uint64_t seed);
  void forget_faults();
  std::uint64_t used_bytes() const;

  std::uint64_t capacity_;
  mutable std::mutex mutex_;
  Names names_, durable_names_;
  std::vector<NameChange> pending_names_;
  std::uint64_t generation_ = 0;  // of open files
  std::uint64_t changes_ = 0;
  std::optional<std::uint64_t> stop_at_, fail_read_;
  bool stopped_ = false;
  std::map<std::uint64_t, Code> failing_changes_;
};

}  // namespace kvsyncfs
