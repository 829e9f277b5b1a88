// mkfs and fsck on real folders: what they make, refuse, leave alone and repair.
#include "mkfs/make_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/env/real.h"
#include "engine/env/store_lock.h"
#include "mkfs/check_store.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

namespace stdfs = std::filesystem;

class MakeStore : public ::testing::Test {
 protected:
  MakeStore() {
    options_.store = folder_.path() + "/store";
    options_.size = {kStoreSizeMin, 0};
    options_.size_given = true;
  }
  Result<Superblock> make() {
    return make_store({*disk_, *clock_, *random_}, options_, [](auto, auto) {});
  }
  void expect_refused(Code code, const std::string& named) {
    const auto before = image();
    const Result<Superblock> made = make();
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, code) << describe(made.error());
    EXPECT_NE(made.error().detail.find(named), std::string::npos) << made.error().detail;
    EXPECT_EQ(image(), before) << "a refusal changes nothing";
  }
  Result<FsckResult> check(bool repair = false, bool scrub = false) {
    FsckOptions options;
    options.store = options_.store;
    options.repair = repair;
    options.scrub = scrub;
    problems_.clear();
    return check_store({*disk_, *clock_, *random_}, options,
                       {[this](std::string_view line) { problems_ += std::string(line) + "\n"; },
                        [](auto, auto, auto) {}});
  }
  /// Names and bytes of everything below the test's folder.
  std::map<std::string, std::string> image() {
    std::map<std::string, std::string> found;
    for (const auto& entry : stdfs::recursive_directory_iterator(folder_.path()))
      found[entry.path()] = entry.is_regular_file() ? read(entry.path()) : "";
    return found;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(options_.store + "/" + name, std::ios::binary) << bytes;
  }
  void fill_store() {
    EngineOptions engine;
    engine.store = options_.store;
    const auto opened = Engine::open(*disk_, *clock_, *random_, engine);
    ASSERT_TRUE(opened) << describe(opened.error());
    const std::string value(100000, 'v');
    ASSERT_TRUE((*opened)->put("a/b", as_bytes(value)));
    ASSERT_TRUE((*opened)->close());
  }

  TempFolder folder_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  MkfsOptions options_;
  std::string problems_;
};

TEST_F(MakeStore, MakesAFolderThatOpensAndIsClean) {
  options_.label = "data";
  options_.uuid = *parse_uuid("10111213-1415-1617-1819-1a1b1c1d1e1f");
  const Result<Superblock> made = make();
  ASSERT_TRUE(made) << describe(made.error());
  EXPECT_EQ(made->label, "data");
  EXPECT_EQ(made->uuid, *options_.uuid);
  EXPECT_EQ(made->size_bytes, kStoreSizeMin);
  const auto result = check(false, true);
  ASSERT_TRUE(result) << describe(result.error());
  EXPECT_EQ(result->status(), kFsckClean);
}

TEST_F(MakeStore, RandomUuidsDiffer) {
  const auto first = make();
  ASSERT_TRUE(first);
  options_.force = true;
  const auto second = make();
  ASSERT_TRUE(second) << describe(second.error());
  EXPECT_NE(first->uuid, second->uuid);
  EXPECT_EQ(first->uuid[6] >> 4, 4) << "version 4";
}

TEST_F(MakeStore, EmptyFolderAndLostAndFoundAreFree) {
  stdfs::create_directories(options_.store + "/lost+found");
  EXPECT_TRUE(make());
  EXPECT_TRUE(stdfs::exists(options_.store + "/lost+found"));
}

TEST_F(MakeStore, MissingParentIsNotFound) {
  options_.store = folder_.path() + "/no/store";
  expect_refused(Code::kNotFound, folder_.path() + "/no");
}

TEST_F(MakeStore, FileIsNotADirectory) {
  std::ofstream(options_.store) << "x";
  expect_refused(Code::kNotDirectory, options_.store);
}

TEST_F(MakeStore, FormattedStoreNeedsForce) {
  ASSERT_TRUE(make());
  fill_store();
  expect_refused(Code::kExists, "--force");
  options_.force = true;
  ASSERT_TRUE(make());
  EngineOptions engine;
  engine.store = options_.store;
  const auto opened = Engine::open(*disk_, *clock_, *random_, engine);
  ASSERT_TRUE(opened);
  EXPECT_FALSE((*opened)->get("a/b"));
  ASSERT_TRUE((*opened)->close());
}

TEST_F(MakeStore, DamagedStoreNeedsForceToo) {
  ASSERT_TRUE(make());
  std::string bytes = read(options_.store + "/superblock");
  bytes[100] ^= 1;
  bytes[kSuperblockSize + 100] ^= 1;
  put("superblock", bytes);
  expect_refused(Code::kExists, options_.store);
  options_.force = true;
  EXPECT_TRUE(make());
}

TEST_F(MakeStore, HalfMadeStoreNeedsForce) {
  ASSERT_TRUE(make());
  stdfs::remove(options_.store + "/superblock");
  expect_refused(Code::kExists, "not finished");
  options_.force = true;
  EXPECT_TRUE(make());
}

TEST_F(MakeStore, ForeignFolderIsRefusedEvenWithForce) {
  stdfs::create_directory(options_.store);
  put("thesis.tex", "years of work");
  expect_refused(Code::kNotEmpty, "thesis.tex");
  options_.force = true;
  expect_refused(Code::kNotEmpty, "thesis.tex");
}

TEST_F(MakeStore, FolderThatOnlyLooksLikeAStoreIsForeign) {
  stdfs::create_directories(options_.store + "/log");
  put("log/access.log", "of a web server");
  options_.force = true;
  expect_refused(Code::kNotEmpty, "log");
}

TEST_F(MakeStore, StoreWithAForeignFileIsRefusedEvenWithForce) {
  ASSERT_TRUE(make());
  put("notes", "mine");
  options_.force = true;
  expect_refused(Code::kNotEmpty, "notes");
}

TEST_F(MakeStore, ForceDoesNotFollowLinks) {
  ASSERT_TRUE(make());
  const std::string precious = folder_.path() + "/precious";
  stdfs::create_directory(precious);
  std::ofstream(precious + "/file") << "x";
  stdfs::create_directory_symlink(precious, options_.store + "/segments/link");
  options_.force = true;
  ASSERT_TRUE(make());
  EXPECT_TRUE(stdfs::exists(precious + "/file"));
}

TEST_F(MakeStore, StoreInUseIsBusyEvenWithForce) {
  ASSERT_TRUE(make());
  const auto lock = StoreLock::take(options_.store);
  ASSERT_TRUE(lock);
  options_.force = true;
  expect_refused(Code::kBusy, options_.store);
  EXPECT_EQ(check().error().code, Code::kBusy);
}

TEST_F(MakeStore, SizeThatTheDiskCannotHoldIsRefused) {
  for (const std::uint64_t size : {std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    options_.size.bytes = size;
    expect_refused(Code::kNoSpace, "free");
  }
  options_.size = {0, 100};
  expect_refused(Code::kNoSpace, "free");
}

TEST_F(MakeStore, SizeBelowTheLeastIsRefused) {
  options_.size.bytes = kStoreSizeMin - 1;
  expect_refused(Code::kInvalid, "too small");
}

TEST_F(MakeStore, RelativePathsAndSlashesAtTheEndWork) {
  options_.store += "//";
  EXPECT_TRUE(make());
  const stdfs::path before = stdfs::current_path();
  stdfs::current_path(folder_.path());
  options_.store = "other";
  EXPECT_TRUE(make());
  stdfs::current_path(before);
}

TEST_F(MakeStore, OverheadGrowsWithTheSizeUpToABound) {
  EXPECT_LE(overhead_bytes(kStoreSizeMin), kStoreSizeMin / 2);
  EXPECT_EQ(overhead_bytes(std::uint64_t{1} << 40), overhead_bytes(std::uint64_t{1} << 50));
}

TEST_F(MakeStore, CheckOfNoStoreSaysSo) {
  EXPECT_EQ(check().error().code, Code::kNotFound);
  stdfs::create_directory(options_.store);
  EXPECT_EQ(check().error().code, Code::kNotFormatted);
  EXPECT_TRUE(stdfs::is_empty(options_.store)) << "a check leaves no lock in a foreign folder";
}

TEST_F(MakeStore, CheckChangesNothingWithoutRepair) {
  ASSERT_TRUE(make());
  fill_store();
  const auto before = image();
  const auto result = check(false, true);
  ASSERT_TRUE(result) << describe(result.error());
  EXPECT_EQ(result->status(), kFsckClean) << problems_;
  EXPECT_GT(result->pages_checked, 20u);
  EXPECT_EQ(image(), before);
}

TEST_F(MakeStore, DamagedSuperblockCopyIsFoundAndRepaired) {
  ASSERT_TRUE(make());
  const std::string good = read(options_.store + "/superblock");
  for (const std::size_t at : {std::size_t{7}, kSuperblockSize + 100}) {
    std::string bytes = good;
    bytes[at] ^= 1;
    put("superblock", bytes);
    auto result = check();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status(), kFsckLeft);
    EXPECT_NE(problems_.find("damaged"), std::string::npos);
    result = check(true);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status(), kFsckCorrected);
    EXPECT_EQ(read(options_.store + "/superblock"), good);
  }
}

TEST_F(MakeStore, CheckOfACrashedStoreIsCleanAndChangesNoByte) {
  ASSERT_TRUE(make());
  EngineOptions engine;
  engine.store = options_.store;
  auto opened = Engine::open(*disk_, *clock_, *random_, engine).value();
  ASSERT_TRUE(opened->put("a/b", as_bytes(std::string(100000, 'v'))));
  ASSERT_TRUE(opened->sync_all());
  ASSERT_TRUE(opened->put("a/c", as_bytes(std::string(50000, 'w'))));
  opened.reset();  // without close(), as a process that is killed
  stdfs::remove(options_.store + "/lock");
  const auto before = image();
  for (const bool scrub : {false, true}) {
    const auto result = check(false, scrub);
    ASSERT_TRUE(result) << describe(result.error());
    EXPECT_EQ(result->status(), kFsckClean) << problems_;
    EXPECT_EQ(image(), before);
  }
}

TEST_F(MakeStore, FormatOfANewerVersionIsRefusedUntouched) {
  const auto made = make();
  ASSERT_TRUE(made);
  Superblock newer = *made;
  newer.incompatible = 1ull << 63;
  put("superblock", encode_superblock_file(newer));
  auto before = image();
  for (const bool repair : {false, true}) EXPECT_EQ(check(repair).error().code, Code::kNewerFormat);
  EXPECT_EQ(image(), before);

  newer.incompatible = 0;
  newer.read_only_compatible = 1;
  put("superblock", encode(newer) + std::string(kSuperblockSize, 'x'));
  before = image();
  EXPECT_EQ(check()->status(), kFsckLeft) << "reading is allowed, and a copy is damaged";
  EXPECT_EQ(check(true).error().code, Code::kNewerFormat);
  EXPECT_EQ(image(), before);
}

TEST_F(MakeStore, OfANodeOfAClusterFsckChecksWhatNeedsNoLog) {
  const auto made = make();
  ASSERT_TRUE(made);
  Superblock node = *made;
  node.incompatible = kIncompatibleCluster;
  ClusterConfig config;
  config.volume = config.node = "n";
  config.endpoints = {"h:1"};
  config.id = {1};
  config.listen = "10.0.0.1:7420";
  put("superblock", encode_superblock_file(node));
  put("cluster", encode(config));
  put("secret", encode_secret(std::string(kVolumeSecretSize, 's')));
  const auto before = image();
  for (const bool repair : {false, true}) {
    const auto result = check(repair);
    ASSERT_TRUE(result) << describe(result.error());
    EXPECT_EQ(result->status(), kFsckClean) << problems_;
    EXPECT_TRUE(result->is_node);
  }
  EXPECT_EQ(image(), before);
  EngineOptions engine;
  engine.store = options_.store;
  const auto opened = Engine::open(*disk_, *clock_, *random_, engine);
  ASSERT_FALSE(opened) << "nothing takes the store for a lone node's";
  EXPECT_EQ(opened.error().code, Code::kUnsupported);

  put("secret", "x");
  stdfs::remove(options_.store + "/cluster");
  put("superblock", encode(node) + std::string(kSuperblockSize, 'x'));
  EXPECT_EQ(check()->problems, 3u) << problems_;
  const auto repaired = check(true);
  EXPECT_EQ(repaired->left, 2u) << problems_;
  EXPECT_NE(problems_.find("left: " + options_.store + "/secret"), std::string::npos) << problems_;
  EXPECT_EQ(read(options_.store + "/superblock"), encode_superblock_file(node));
}

TEST_F(MakeStore, GarbageAndACutSuperblockAreMadeOfTheOtherCopy) {
  ASSERT_TRUE(make());
  const std::string good = read(options_.store + "/superblock");
  const std::string junk(kSuperblockSize, 'j');
  for (const std::string& bytes :
       {junk + good.substr(kSuperblockSize), good.substr(0, kSuperblockSize) + junk,
        good.substr(0, kSuperblockSize), good.substr(0, kSuperblockSize + 100)}) {
    put("superblock", bytes);
    EXPECT_EQ(check()->status(), kFsckLeft);
    EXPECT_EQ(check(true)->status(), kFsckCorrected);
    EXPECT_EQ(problems_.rfind("mended: ", 0), 0u) << problems_;
    EXPECT_EQ(read(options_.store + "/superblock"), good);
    EXPECT_EQ(check()->status(), kFsckClean);
  }
}

TEST_F(MakeStore, ScrubNamesTheFilesOfAllBadPages) {
  ASSERT_TRUE(make());
  fill_store();
  std::string path;
  for (const auto& entry : stdfs::recursive_directory_iterator(options_.store + "/segments"))
    if (entry.is_regular_file() && read(entry.path()).find("vvvv") != std::string::npos)
      path = entry.path();
  ASSERT_FALSE(path.empty());
  std::string bytes = read(path);
  const std::size_t data = bytes.find("vvvv");
  for (const std::size_t page : {0, 3, 4}) bytes[data + page * 4096 + 7] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(check()->status(), kFsckClean) << "without --scrub data is not read";
  const auto result = check(false, true);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->bad_pages, 3u);
  EXPECT_EQ(result->pages_checked, 25u) << "it goes on behind a bad page";
  EXPECT_EQ(result->status(), kFsckLeft);
  EXPECT_NE(problems_.find("(/a/b): bytes 0 to 4095 cannot"), std::string::npos) << problems_;
  EXPECT_NE(problems_.find("(/a/b): bytes 12288 to 20479 cannot"), std::string::npos) << problems_;
  const auto repaired = check(true, true);
  ASSERT_TRUE(repaired) << describe(repaired.error());
  EXPECT_EQ(repaired->status(), kFsckLeft) << "what is lost is never called mended";
  EXPECT_EQ(problems_.rfind("left: ", 0), 0u) << problems_;
}

}  // namespace
}  // namespace kvsyncfs
