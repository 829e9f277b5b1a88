// A whole engine over a simulated disk, clock and randomness, a history of calls that a seed
// chooses, and the model that says what may be there after each crash. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/volume_model.h"

namespace kvsyncfs {

class SimClock final : public Clock {
 public:
  Timestamp now() override {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    return {static_cast<std::int64_t>(1'700'000'000 + ns_ / kSecond),
            static_cast<std::uint32_t>(ns_ % kSecond)};
  }
  std::uint64_t boot_ns() override { return ns_; }
  void advance(std::uint64_t ns) { ns_ += ns; }

 private:
  std::uint64_t ns_ = 1'000'000'000;
};

class SimRandomSource final : public Random {
 public:
  explicit SimRandomSource(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

class EngineWorld {
 public:
  static constexpr const char* kStore = "/store";
  static Status format(SimDisk& disk);

  /// `disk` has a store. One seed is one run.
  EngineWorld(std::unique_ptr<SimDisk> disk, std::uint64_t seed);
  ~EngineWorld();

  SimDisk& disk() { return *disk_; }
  /// Empty, or what went wrong; nothing is done after that.
  const std::string& problem() const { return problem_; }

  /// Opens and compares with the model, which follows what is found. False: the disk has stopped,
  /// or there is a problem.
  bool open();
  /// Until the steps are done or the disk has stopped; counts change 1 from here.
  void run(int steps);
  /// The power fails: the next open() sees what is left.
  void crash(std::uint64_t seed);
  /// The process dies.
  void kill();
  /// Ends in order.
  void close();
  /// The opened engine takes bytes, makes them durable and finds no fault in itself.
  void probe();

 private:
  bool did(const char* call, const Status& status);
  template <typename T>
  bool did(const char* call, const Result<T>& result) {
    return did(call, result ? Status{} : Status(result.error()));
  }
  bool load(InodeId folder, const std::string& prefix, VolumeContents& contents);
  bool read(InodeId file, std::uint64_t size, std::string& out);

  bool step();
  bool create(bool folder);
  bool write();
  bool truncate();
  bool put();
  bool rename();
  bool link();
  bool unlink();
  bool sync_one();
  bool sync_all();
  bool background();
  bool read_back();

  /// A path to use: of root or of a folder that exists.
  std::string pick_path();
  std::string pick_file();  // empty: there is none
  std::string fresh_bytes(std::size_t size);
  InodeId folder_of(const std::string& path) const;

  std::unique_ptr<SimDisk> disk_;
  SimRandom random_;
  SimClock clock_;
  SimRandomSource source_;
  EngineOptions options_;
  VolumeModel model_;
  std::uint64_t fills_ = 0;
  std::string problem_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace kvsyncfs
