// A store that is nearly full: pages of one file, of which every version is told from the others,
// under random overwrites, with the cleaner at work. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/sim/engine_world.h"
#include "tests/sim/sim_disk.h"

namespace kvsyncfs {

class FullStore {
 public:
  FullStore(std::unique_ptr<SimDisk> disk, std::uint64_t seed);
  ~FullStore();

  SimDisk& disk() { return *disk_; }
  Engine& engine() { return *engine_; }
  InodeId file() const { return file_; }
  std::uint64_t page_count() const { return newest_.size(); }
  /// Empty, or what went wrong.
  const std::string& problem() const { return problem_; }

  /// Opens; every page must be one of its versions since the last sync. False: the disk has stopped
  /// or there is a problem.
  bool open();
  /// Grows the file to that share of what the store says it has, and syncs.
  bool fill(unsigned percent);
  /// Grows the file until it is refused. True: it was, and for want of space.
  bool fill_up();
  /// So many writes of one to four pages anywhere, with syncs and background work between them.
  bool overwrite(int writes);
  bool verify();
  /// The file goes, and its space is back, without another opening.
  bool empty();
  bool close();

  /// The power fails (`seed`), or the process dies.
  void crash(std::uint64_t seed);
  void kill();
  /// A store with the same contents, for another run; this one must be closed.
  std::unique_ptr<FullStore> copy(std::uint64_t seed) const;

 private:
  bool did(const char* call, const Status& status);
  bool write(std::uint64_t page, std::uint64_t count, Code* refused = nullptr);
  bool sync();

  std::unique_ptr<SimDisk> disk_;
  SimRandom random_;
  SimClock clock_{10'000'000};
  SimRandomSource source_;
  EngineOptions options_;
  std::vector<std::uint32_t> newest_, durable_;  // versions, by page; 0: never written
  InodeId file_;
  std::string problem_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace kvsyncfs
