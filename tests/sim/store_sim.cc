// The segment store on a disk that loses and tears: whatever was synced reads back, and nothing
// ever reads back wrong, after a power cut at every change of short histories and some of long
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "engine/store/segment_store.h"
#include "tests/sim/sim_disk.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSegmentSize = 16 * kPageSize;

/// What the engine's catalog would know.
struct Catalog {
  std::map<SegmentId, KnownSegment> segments;
  std::vector<std::pair<Placed, std::string>> parts;  ///< and their bytes
};

/// One history against one disk, with a log that is durable when sync() says so.
class History {
 public:
  History(SimDisk& disk, std::uint64_t seed) : disk_(disk), random_(seed) {
    options_.directory = "/segments";
    options_.volume_tag = 77;
    options_.size_bytes = 64 * kSegmentSize;
    options_.segment_size_bytes = kSegmentSize;
    options_.open_files_max = 3;
    options_.open_segment = [this]() -> Result<SegmentId> {
      const SegmentId id{next_id_++};
      now_.segments[id] = {id, false, 0};
      return id;
    };
    options_.seal_segment = [this](SegmentId id, std::uint64_t length) -> Status {
      now_.segments[id] = {id, true, length};
      return {};
    };
  }

  /// Until it ends or the disk does.
  void run(int steps) {
    if (!SegmentStore::format(disk_, options_) || !disk_.sync_directory("/")) return;
    formatted_ = true;
    auto opened = SegmentStore::open(disk_, options_);
    if (!opened) return;
    store_ = std::move(*opened);
    for (int i = 0; i < steps && step(); ++i) {
    }
  }

  /// The store of the next life, on what a crash left, holds all that was durable.
  void check(SimDisk& disk) {
    if (!formatted_) return;
    now_ = durable_;
    // What the log lost comes again, ids as well.
    next_id_ = durable_.segments.empty() ? 1 : durable_.segments.rbegin()->first.value + 1;
    reopen(disk);
    if (::testing::Test::HasFatalFailure()) return;
    for (const auto& [placed, bytes] : durable_.parts) {
      const auto out = read(placed);
      ASSERT_TRUE(out) << describe(out.error());
      ASSERT_EQ(*out, bytes);
    }
    // It goes on as before, in files of the former life too, and nothing old shows in them.
    for (int i = 0; i < 4; ++i) append(Stream::kUser);
    append(Stream::kCleaner);
    for (const auto& [placed, bytes] : now_.parts) ASSERT_EQ(*read(placed), bytes);
    check_seals(disk);
    for (const auto& [id, segment] : now_.segments) {
      const auto bad = store_->scrub(id, Scrub::kPages, [](auto) {});
      ASSERT_TRUE(bad.has_value() ? bad->empty() : bad.error().code == Code::kNotFound) << id.value;
    }
  }

 private:
  void reopen(SimDisk& disk) {
    store_.reset();
    auto opened = SegmentStore::open(disk, options_);
    ASSERT_TRUE(opened) << describe(opened.error());
    store_ = std::move(*opened);
    std::vector<KnownSegment> known;
    for (const auto& [id, segment] : now_.segments) known.push_back(segment);
    const Status adopted = store_->adopt(known);
    ASSERT_TRUE(adopted) << describe(adopted.error());
  }

  /// After the next life ended as well, its segments are sealed where its last batch ends.
  void check_seals(SimDisk& disk) {
    std::map<SegmentId, std::uint64_t> ends;
    for (const auto& [id, segment] : now_.segments) {
      if (!segment.sealed) ends[id] = 0;
    }
    for (const auto& [placed, bytes] : now_.parts) {
      if (const auto end = ends.find(placed.segment); end != ends.end())
        end->second =
            std::max(end->second, round_up(placed.segment_offset + placed.length, kPageSize));
    }
    disk.kill();
    reopen(disk);
    for (const auto& [id, end] : ends) ASSERT_EQ(now_.segments[id].length, end) << id.value;
  }

  Result<std::string> read(const Placed& at) {
    std::string out(at.length, '?');
    KVSYNCFS_TRY(store_->read(at.segment, at.segment_offset,
                              {reinterpret_cast<std::byte*>(out.data()), out.size()}));
    return out;
  }

  bool append(Stream stream) {
    const std::uint64_t count = 1 + random_.below(3);
    std::vector<std::string> runs;
    std::vector<Bytes> bytes;
    for (std::uint64_t i = 0; i < count; ++i)
      runs.emplace_back(1 + random_.below(3 * kPageSize), static_cast<char>(random_.below(256)));
    for (const std::string& run : runs) bytes.push_back(as_bytes(run));
    const auto placed = store_->append(stream, bytes);
    if (!placed) return false;
    for (const Placed& p : *placed)
      now_.parts.emplace_back(p, runs[p.run].substr(p.run_offset, p.length));
    return true;
  }

  bool sync() {
    if (!store_->sync()) return false;
    durable_ = now_;
    return true;
  }

  bool remove_one() {
    for (const auto& [id, segment] : now_.segments) {
      if (!segment.sealed) continue;
      const SegmentId victim = id;
      now_.segments.erase(victim);
      std::erase_if(now_.parts, [&](const auto& part) { return part.first.segment == victim; });
      return sync() && store_->remove(victim).has_value();  // the deletion is durable before
    }
    return true;
  }

  bool step() {
    switch (random_.below(8)) {
      case 0:
        return sync();
      case 1:
        return remove_one();
      case 2:
        return append(Stream::kCleaner);
      case 3:
        return store_->reserve(random_.below(4) * kPageSize).has_value();
      case 4:
        if (now_.parts.empty()) return true;
        return read(now_.parts[random_.below(now_.parts.size())].first).has_value();
      default:
        return append(Stream::kUser);
    }
  }

  SimDisk& disk_;
  SimRandom random_;
  StoreOptions options_;
  std::uint64_t next_id_ = 1;
  bool formatted_ = false;
  Catalog now_, durable_;
  std::unique_ptr<SegmentStore> store_;
};

/// Runs history `seed` up to change `stop`, 0 for all of it; returns the count of changes.
std::uint64_t run_and_check(std::uint64_t seed, int steps, std::uint64_t stop,
                            std::uint64_t crashes) {
  SimDisk disk;
  if (stop != 0) disk.stop_at(stop);
  {
    History history(disk, seed);
    history.run(steps);
  }
  const std::uint64_t changes = disk.changes();
  for (std::uint64_t crash = 0; crash < crashes; ++crash) {
    SCOPED_TRACE("history " + std::to_string(seed) + " stop " + std::to_string(stop) + " crash " +
                 std::to_string(crash));
    SimDisk again;  // a history is checked once, and runs alike each time
    if (stop != 0) again.stop_at(stop);
    History history(again, seed);
    history.run(steps);
    const auto left = again.after_crash(seed * 1000 + crash);
    history.check(*left);
    if (::testing::Test::HasFatalFailure()) return changes;
  }
  return changes;
}

TEST(StoreSim, EveryPointOfShortHistories) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::uint64_t changes = run_and_check(seed, 25, 0, 2);
    for (std::uint64_t stop = 1; stop <= changes; ++stop) {
      run_and_check(seed, 25, stop, 3);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(StoreSim, RandomPointsOfLongHistories) {
  SimRandom random(1);
  for (std::uint64_t seed = 100; seed < 400; ++seed) {
    run_and_check(seed, 150, 1 + random.below(300), 1);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace kvsyncfs
