// A whole engine over a simulated disk, clock and randomness, a history of calls that a seed
// chooses, and the model that says what may be there after each crash or fault. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/volume_model.h"

namespace kvsyncfs {

class SimClock : public Clock {
 public:
  /// `tick_ns` goes by with each look at the clock, so that what waits for a deadline meets it.
  explicit SimClock(std::uint64_t tick_ns = 0) : tick_ns_(tick_ns) {}
  Timestamp now() override {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    return {static_cast<std::int64_t>(1'700'000'000 + ns_ / kSecond),
            static_cast<std::uint32_t>(ns_ % kSecond)};
  }
  std::uint64_t boot_ns() override { return ns_ += tick_ns_; }
  /// So much goes by, perhaps with others at work meanwhile.
  virtual void advance(std::uint64_t ns) { ns_ += ns; }

 private:
  const std::uint64_t tick_ns_;
  std::uint64_t ns_ = 1'000'000'000;
};

class SimRandomSource final : public Random {
 public:
  explicit SimRandomSource(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

/// Which calls a history has.
enum class Workload {
  kCommon,  ///< bytes and names as most programs use them
  kWide,    ///< every call of the engine
};

/// What may go wrong besides crashes.
enum class Faults {
  kNone,
  kIo,       ///< calls may fail with kIo or kCorrupt: from the first one on, only reads and syncs
  kNoSpace,  ///< calls of writers may fail with kNoSpace, and then have done nothing
};

MutableBytes bytes_of(std::string& s);

class EngineWorld {
 public:
  static constexpr const char* kStore = "/store";
  static Status format(SimDisk& disk);
  /// A new disk with an empty store.
  static std::unique_ptr<SimDisk> new_store();

  /// `disk` has a store. One seed is one run.
  EngineWorld(std::unique_ptr<SimDisk> disk, std::uint64_t seed,
              Workload workload = Workload::kCommon);
  ~EngineWorld();

  SimDisk& disk() { return *disk_; }
  /// Empty, or what went wrong; nothing is done after that.
  const std::string& problem() const { return problem_; }

  /// From now on.
  void allow(Faults faults) { faults_ = faults; }
  /// A call failed, as allow(kIo) lets it.
  bool failed() const { return failed_; }

  /// Opens and compares with the model, which follows what is found. False: the disk has stopped,
  /// or there is a problem.
  bool open();
  /// Until the steps are done or the disk has stopped; counts change 1 from here.
  void run(int steps);
  /// The power fails: the next open() sees what is left.
  void crash(std::uint64_t seed);
  /// The process dies.
  void kill();
  /// Ends in order. False: it is not closed.
  bool close();
  /// The opened engine takes bytes, makes them durable and finds no fault in itself; at last it is
  /// emptied and has all its space back.
  void probe();

 private:
  /// How a call went. kStop: the history ends here.
  enum class Outcome { kDone, kRefused, kStop };
  Outcome outcome(const char* call, const Status& status);
  template <typename T>
  Outcome outcome(const char* call, const Result<T>& result) {
    return outcome(call, result ? Status{} : Status(result.error()));
  }
  /// kDone.
  template <typename T>
  bool did(const char* call, const T& result) {
    return outcome(call, result) == Outcome::kDone;
  }
  /// May the history go on, though the last call was not done?
  bool goes_on() const { return refused_ && problem_.empty(); }
  bool load(InodeId folder, const std::string& prefix, VolumeContents& contents);
  bool load_xattrs(InodeId inode, VolumeContents& contents);
  bool read(InodeId file, std::uint64_t size, std::string& out);
  void check_accounts(const VolumeContents& contents);
  bool remove_all(InodeId folder);

  bool step();
  bool common_step();
  bool wide_step();
  bool step_after_failure();

  // engine_world_names.cc
  bool create(bool folder);
  bool rename();
  bool exchange();
  bool move_folder();
  bool remove_folder();
  bool link();
  bool unlink();
  bool set_xattr();
  bool remove_xattr();
  bool hold();
  bool let_go();
  bool check_attributes();
  bool check_keys();
  bool check_value();

  // engine_world_bytes.cc
  bool write();
  bool write_file(InodeId file);
  bool truncate();
  bool put();
  bool allocate();
  bool clone();
  bool sync_one();
  bool sync_all();
  bool background();
  bool read_back();
  bool check_holes();

  /// A path to use: of root or of a folder that exists.
  std::string pick_path();
  std::string pick_file();              // empty: there is none
  std::optional<InodeId> pick_inode();  // of a file with a name, or one that is held
  std::string fresh_bytes(std::size_t size);
  InodeId folder_of(const std::string& path) const;
  bool has_name(InodeId inode) const;

  const Workload workload_;
  Faults faults_ = Faults::kNone;
  bool lost_power_ = false;  // since the last opening that came to its end
  bool failed_ = false, refused_ = false;
  std::set<InodeId> held_;
  std::unique_ptr<SimDisk> disk_;
  SimRandom random_;
  SimClock clock_;
  SimRandomSource source_;
  EngineOptions options_;
  VolumeModel model_, before_;  // before_: the call under way
  std::uint64_t fills_ = 0;
  std::string problem_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace kvsyncfs
