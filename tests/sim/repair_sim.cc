// fsck on a disk that crashes: a look changes nothing and judges a crashed store as recovery does;
// a repair may be cut anywhere and is done again.
#include <gtest/gtest.h>

#include "engine/catalog/mending.h"
#include "tests/sim/engine_world.h"

namespace kvsyncfs {
namespace {

constexpr const char* kStore = EngineWorld::kStore;

std::string value_of(int seed, std::size_t size) {
  std::string bytes(size, '\0');
  SimRandomSource random(static_cast<std::uint64_t>(seed));
  for (char& c : bytes) c = static_cast<char>(random.next());
  return bytes;
}

class RepairSim : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Engine>> open(SimDisk& disk, bool read_only) {
    EngineOptions options;
    options.store = kStore;
    options.read_only = options.for_check = read_only;
    return Engine::open(disk, clock_, random_, options);
  }
  /// Problems that a look finds; it must change nothing.
  std::uint64_t look(SimDisk& disk) {
    const std::uint64_t changes = disk.changes();
    std::string text;
    Engine::CheckOptions check;
    check.scrub = true;
    check.report = [&](const std::string& line) { text += line + "\n"; };
    const auto engine = open(disk, true);
    EXPECT_TRUE(engine) << describe(engine.error());
    if (!engine) return ~std::uint64_t{0};
    const auto report = (*engine)->check(check);
    EXPECT_TRUE(report) << describe(report.error());
    EXPECT_TRUE((*engine)->close());
    EXPECT_EQ(disk.changes(), changes);
    found_ = text;
    return report ? report->problems : ~std::uint64_t{0};
  }
  Result<Engine::CheckReport> repair(SimDisk& disk) {
    EngineOptions options;
    options.store = kStore;
    return Engine::repair(disk, clock_, random_, options, {});
  }
  void expect_values(SimDisk& disk, const std::map<std::string, std::string>& values) {
    const auto engine = open(disk, true);
    ASSERT_TRUE(engine) << describe(engine.error());
    for (const auto& [key, value] : values) {
      const auto found = (*engine)->get(key);
      ASSERT_TRUE(found) << key << ": " << describe(found.error());
      EXPECT_TRUE(*found == value) << key;
    }
  }

  SimClock clock_;
  SimRandomSource random_{1};
  std::string found_;
};

TEST_F(RepairSim, LookAtACrashedStoreIsCleanAndChangesNothing) {
  const auto history = [&](SimDisk& disk) -> Status {
    KVSYNCFS_ASSIGN(const auto engine, open(disk, false));
    for (int i = 0; i < 12; ++i) {
      KVSYNCFS_TRY(engine->put("a/" + std::to_string(i % 5),
                               as_bytes(value_of(i, i % 3 == 0 ? 300'000 : 5'000))));
      if (i % 4 == 1) KVSYNCFS_TRY(engine->remove("a/" + std::to_string((i + 1) % 5)));
      if (i % 3 == 2) KVSYNCFS_TRY(engine->sync_all());
      clock_.advance(400'000'000);
      engine->run_background();
    }
    return {};
  };
  SimDisk whole;
  ASSERT_TRUE(EngineWorld::format(whole));
  const std::uint64_t first = whole.changes();
  (void)history(whole);
  ASSERT_GT(whole.changes(), first + 20);
  for (std::uint64_t stop = first + 1; stop <= whole.changes(); ++stop) {
    SimDisk disk;
    ASSERT_TRUE(EngineWorld::format(disk));
    disk.stop_at(stop);
    (void)history(disk);
    for (const std::uint64_t seed : {stop, stop + 1000}) {
      const auto crashed = disk.after_crash(seed);
      ASSERT_EQ(look(*crashed), 0u) << "stop " << stop << " seed " << seed << ": " << found_;
    }
    disk.kill();
    ASSERT_EQ(look(disk), 0u) << "killed at " << stop << ": " << found_;
  }
}

/// A killed store, whose open segment somebody refers to with no bytes: recovery reads references
/// up to the last one, and this one leads it nowhere.
TEST_F(RepairSim, ReferenceOfNoLengthIsDamageAndNoLoop) {
  SimDisk disk;
  ASSERT_TRUE(EngineWorld::format(disk));
  const std::map<std::string, std::string> values{{"a", value_of(1, 50'000)}};
  {
    auto engine = open(disk, false).value();
    ASSERT_TRUE(engine->put("a", as_bytes(values.at("a"))));
    ASSERT_TRUE(engine->sync_all());
    disk.kill();
  }
  Extent nothing;
  for (const std::string& name : disk.list(std::string(kStore) + "/segments").value())
    if (name.ends_with(".seg")) nothing.segment = {std::stoull(name, nullptr, 16)};
  ASSERT_NE(nothing.segment, kNoSegment);
  nothing.segment_offset = 1u << 20;
  {
    CatalogOptions options;
    options.directory = std::string(kStore) + "/catalog";
    const auto tables = Tables::open(disk, options, false).value();
    Mending harm(*tables);
    harm.put(reverse_key(kRootInode, nothing).view(), encode_length(0));
    ASSERT_TRUE(harm.commit(*tables, tables->cursor()));
    ASSERT_TRUE(tables->begin_flush());
    ASSERT_TRUE(tables->finish_flush([] { return false; }));
  }
  EXPECT_EQ(open(disk, false).error().code, Code::kCorrupt);
  disk.kill();
  const auto report = repair(disk);
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_GT(report->repaired, 0u);
  EXPECT_EQ(look(disk), 0u) << found_;
  expect_values(disk, values);
}

/// The log's unlink needs an entry that does not decode: mount says so, repair goes past it.
TEST_F(RepairSim, LogThatMeetsADamagedRecordIsNotMountedBeforeARepair) {
  SimDisk disk;
  ASSERT_TRUE(EngineWorld::format(disk));
  const std::map<std::string, std::string> values{{"kept", value_of(1, 5000)}};
  InodeId folder;
  {
    auto engine = open(disk, false).value();
    ASSERT_TRUE(engine->put("kept", as_bytes(values.at("kept"))));
    ASSERT_TRUE(engine->put("a/gone", as_bytes("bytes")));
    folder = engine->lookup(kRootInode, "a")->inode;
    ASSERT_TRUE(engine->close());
    engine = open(disk, false).value();
    ASSERT_TRUE(engine->remove("a/gone"));
    ASSERT_TRUE(engine->sync_all());
    disk.kill();
  }
  {
    CatalogOptions options;
    options.directory = std::string(kStore) + "/catalog";
    const auto tables = Tables::open(disk, options, false).value();
    Mending harm(*tables);
    harm.put(dentry_key(folder, "gone").view(), "junk");
    ASSERT_TRUE(harm.commit(*tables, tables->cursor()));
    ASSERT_TRUE(tables->begin_flush());
    ASSERT_TRUE(tables->finish_flush([] { return false; }));
  }
  EXPECT_EQ(open(disk, false).error().code, Code::kCorrupt);
  disk.kill();
  ASSERT_TRUE(repair(disk));
  EXPECT_EQ(look(disk), 0u) << found_;
  expect_values(disk, values);
}

/// The best victim has a reference that no extent answers: the cleaner could move it for ever.
TEST_F(RepairSim, ReferenceWithoutExtentIsLeftByTheCleaner) {
  SimDisk disk;
  ASSERT_TRUE(EngineWorld::format(disk));
  {
    auto engine = open(disk, false).value();
    ASSERT_TRUE(engine->put("kept", as_bytes(value_of(1, 4096))));
    ASSERT_TRUE(engine->put("gone", as_bytes(value_of(2, 900'000))));
    ASSERT_TRUE(engine->put("next", as_bytes(value_of(3, 900'000))));
    ASSERT_TRUE(engine->remove("gone"));
    ASSERT_TRUE(engine->close());
  }
  {
    CatalogOptions options;
    options.directory = std::string(kStore) + "/catalog";
    const auto tables = Tables::open(disk, options, false).value();
    const InodeId kept = (**tables->dentry(kRootInode, "kept")).inode;
    const Extent extent = tables->extents(kept, 0, kFileSizeMax, 1).value().at(0);
    Mending harm(*tables);
    harm.put(reverse_key(kRootInode, extent).view(), encode_length(extent.length));
    ASSERT_TRUE(harm.commit(*tables, tables->cursor()));
    ASSERT_TRUE(tables->begin_flush());
    ASSERT_TRUE(tables->finish_flush([] { return false; }));
  }
  std::string told;
  EngineOptions options;
  options.store = kStore;
  options.warn = [&](std::string_view line) { told += std::string(line) + "\n"; };
  const auto engine = Engine::open(disk, clock_, random_, options).value();
  Status filled{};
  for (int i = 0; filled && i < 1000; ++i)
    filled = engine->put("fill/" + std::to_string(i), as_bytes(value_of(i, 500'000)));
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().code, Code::kNoSpace);
  for (int i = 0; i < 40; ++i) {  // what they replace has to be cleaned for the next
    const Status replaced = engine->put("fill/0", as_bytes(value_of(i, 500'000)));
    ASSERT_TRUE(replaced) << i << ": " << describe(replaced.error());
  }
  EXPECT_NE(told.find("cleaner leaves a damaged segment alone"), std::string::npos) << told;
  EXPECT_TRUE(engine->get("kept").value() == value_of(1, 4096));
}

/// A store whose catalog contradicts itself in many ways, and from which nothing is lost.
class DamagedStore : public RepairSim {
 protected:
  DamagedStore() {
    EXPECT_TRUE(EngineWorld::format(disk_));
    for (const auto& [key, size] : std::map<std::string, std::size_t>{
             {"a/b", 50'000}, {"a/c", 300'000}, {"top", 9'000}, {"z/y/x", 5'000}})
      values_[key] = value_of(static_cast<int>(size), size);
    auto engine = open(disk_, false).value();
    for (const auto& [key, value] : values_) EXPECT_TRUE(engine->put(key, as_bytes(value)));
    EXPECT_TRUE(engine->close());
    engine.reset();
    damage();
  }
  void damage() {
    CatalogOptions options;
    options.directory = std::string(kStore) + "/catalog";
    const auto tables = Tables::open(disk_, options, false).value();
    Mending harm(*tables);
    const auto entry = [&](InodeId parent, const char* name) {
      return **tables->dentry(parent, name);
    };
    const InodeId a = entry(kRootInode, "a").inode, top = entry(kRootInode, "top").inode;
    const Dentry b = entry(a, "b"), c = entry(a, "c");
    harm.erase_entry(a, b);                                        // nameless
    harm.put(orphan_key(c.inode).view(), encode(OrphanRecord{}));  // recovery would free it
    harm.erase(inode_key(entry(kRootInode, "z").inode).view());    // a folder without a record
    (*harm.edit(top))->link_count = 3;
    const auto extents = tables->extents(top, 0, kFileSizeMax, 10).value();
    harm.erase(reverse_key(top, extents[0]).view());
    harm.erase(segment_key(extents[0].segment).view());  // recovery would remove its file
    Cursor cursor = tables->cursor();
    cursor.inodes += 5;
    EXPECT_TRUE(harm.commit(*tables, cursor));
    EXPECT_TRUE(tables->begin_flush());
    EXPECT_TRUE(tables->finish_flush([] { return false; }));
    values_["lost+found/#" + std::to_string(b.inode.value)] = values_["a/b"];
    values_.erase("a/b");
  }

  SimDisk disk_;
  std::map<std::string, std::string> values_;
};

TEST_F(DamagedStore, RepairMendsAllAndLosesNothing) {
  EXPECT_GT(look(disk_), 6u);
  const auto report = repair(disk_);
  ASSERT_TRUE(report) << describe(report.error());
  EXPECT_GT(report->repaired, 6u);
  EXPECT_EQ(look(disk_), 0u) << found_;
  expect_values(disk_, values_);
  EXPECT_EQ(repair(disk_)->repaired, 0u);
}

TEST_F(DamagedStore, RepairThatIsCutAnywhereIsDoneAgain) {
  const auto whole = disk_.after_crash(0);
  const std::uint64_t first = whole->changes();
  ASSERT_TRUE(repair(*whole));
  const std::uint64_t steps = whole->changes() - first;
  ASSERT_GT(steps, 10u);
  // Every other one: RocksDB waits a second after each flush that fails.
  for (std::uint64_t step = 1; step <= steps; step += 2) {
    const auto cut = disk_.after_crash(0);
    cut->stop_at(cut->changes() + step);
    (void)repair(*cut);
    for (const std::uint64_t seed : {step, step + 1000}) {
      const auto crashed = cut->after_crash(seed);
      const auto again = repair(*crashed);
      ASSERT_TRUE(again) << "step " << step << ": " << describe(again.error());
      ASSERT_EQ(look(*crashed), 0u) << "step " << step << " seed " << seed << ": " << found_;
      expect_values(*crashed, values_);
    }
  }
}

TEST_F(DamagedStore, LostSegmentFileIsToldByTheNamesOfItsFiles) {
  ASSERT_TRUE(repair(disk_));
  for (const std::string& name : disk_.list(std::string(kStore) + "/segments").value())
    ASSERT_TRUE(disk_.remove(std::string(kStore) + "/segments/" + name));
  EXPECT_GT(look(disk_), 0u);
  EXPECT_NE(found_.find("(/a/c): bytes 0 to 299999 cannot be read, segment"), std::string::npos)
      << found_;
  ASSERT_TRUE(repair(disk_));
  EXPECT_GT(look(disk_), 0u);
  const auto engine = open(disk_, true).value();
  EXPECT_EQ(engine->get("a/c").error().code, Code::kIo) << "never zeros";
}

}  // namespace
}  // namespace kvsyncfs
